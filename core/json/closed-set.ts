/**
 * A closed set is declared once, as a table of its values and what each of them means: the type, the list of values and the interface's
 * documentation derive from it.
 *
 * @returns the values in the table's order, which stored records count on
 */
export function valuesOf<Value extends string>(meanings: Readonly<Record<Value, string>>): readonly Value[] {
  return Object.keys(meanings) as Value[];
}
