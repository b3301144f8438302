/** A table that draws only the rows in view, so that ten thousand cost no more than fifty. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Scroll } from "./scroll.js";

const ROW_PX = 34;
/** Rows drawn above and below what is in view. */
const MARGIN = 12;
/** Fewer rows than this are simply all drawn. */
const WINDOWED_FROM = 200;

/** The names of columns, each with the class of its cell if it has one. False: the column is not there. */
export function HeadRow({
  columns,
}: {
  columns: readonly (string | readonly [name: string, style: string] | false)[];
}) {
  return (
    <tr>
      {columns.map((column) => {
        const [name, style = ""] = typeof column === "string" ? [column] : column || [];
        return (
          name !== undefined && (
            <th key={name} scope="col" class={style}>
              {name}
            </th>
          )
        );
      })}
    </tr>
  );
}

interface VirtualTableProps<Row> {
  label: string;
  rows: readonly Row[];
  columns: number;
  head: ComponentChildren;
  /** A `<tr>` of the row's cells. @param at its number, from 0 */
  draw(row: Row, at: number): ComponentChildren;
  class?: string;
}

export function VirtualTable<Row>({ label, rows, columns, head, draw, class: name = "" }: VirtualTableProps<Row>) {
  const box = useRef<HTMLElement>(null);
  const [first, setFirst] = useState(0);
  const [count, setCount] = useState(50);
  const isWindowed = rows.length > WINDOWED_FROM;
  const onScroll = (): void => {
    const { current } = box;
    if (current === null || !isWindowed) return;
    setFirst(Math.max(0, Math.floor(current.scrollTop / ROW_PX) - MARGIN));
    setCount(Math.ceil(current.clientHeight / ROW_PX) + 2 * MARGIN);
  };
  useLayoutEffect(onScroll, [rows.length]);
  const from = isWindowed ? Math.min(first, Math.max(0, rows.length - count)) : 0;
  const until = isWindowed ? Math.min(rows.length, from + count) : rows.length;
  const filler = (height: number) =>
    height > 0 && (
      <tr class="filler">
        <td colSpan={columns} style={{ height: `${height}px`, padding: 0, border: 0 }} />
      </tr>
    );
  return (
    <Scroll class={isWindowed ? "windowed" : ""} label={label} box={box} onScroll={onScroll}>
      <table class={name} aria-rowcount={rows.length + 1}>
        <thead>{head}</thead>
        <tbody>
          {filler(from * ROW_PX)}
          {rows.slice(from, until).map((row, at) => draw(row, from + at))}
          {filler((rows.length - until) * ROW_PX)}
        </tbody>
      </table>
    </Scroll>
  );
}
