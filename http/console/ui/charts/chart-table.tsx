import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { HeadRow, VirtualTable } from "../virtual-rows.js";

interface ChartTableProps {
  label: string;
  columns: readonly string[];
  rows: readonly (readonly ComponentChildren[])[];
}

/** The numbers of a chart, when somebody asks for them. */
export function ChartTable({ label, columns, rows }: ChartTableProps) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{label}</summary>
      {isOpen && (
        <VirtualTable
          label={label}
          rows={rows}
          columns={columns.length}
          head={<HeadRow columns={columns.map((name, at) => [name, at === 0 ? "" : "number"])} />}
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
