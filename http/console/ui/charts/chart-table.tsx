import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { VirtualTable } from "../virtual-rows.js";

interface ChartTableProps {
  label: string;
  columns: readonly string[];
  rows: readonly (readonly ComponentChildren[])[];
}

/** The numbers of a chart, when somebody asks for them. */
export function ChartTable({ label, columns, rows }: ChartTableProps) {
  const [isOpen, setIsOpen] = useState(false);
  const head = (
    <tr>
      {columns.map((name, at) => (
        <th key={name} scope="col" class={at === 0 ? "" : "number"}>
          {name}
        </th>
      ))}
    </tr>
  );
  return (
    <details onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{label}</summary>
      {isOpen && (
        <VirtualTable
          label={label}
          rows={rows}
          columns={columns.length}
          head={head}
          draw={(cells, at) => (
            <tr key={at}>
              {cells.map((cell, column) =>
                column === 0 ? (
                  <th key={column} scope="row">
                    {cell}
                  </th>
                ) : (
                  <td key={column} class="number">
                    {cell}
                  </td>
                ),
              )}
            </tr>
          )}
        />
      )}
    </details>
  );
}
