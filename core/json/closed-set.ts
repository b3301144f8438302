/**
 * The values of a closed set. The set is declared once, as a table of values and meanings. The type, the list of values
 * and the interface's documentation come from the table.
 *
 * @returns the values in the table's order; stored records depend on the order
 */
export function valuesOf<Value extends string>(meanings: Readonly<Record<Value, string>>): readonly Value[] {
  return Object.keys(meanings) as Value[];
}
