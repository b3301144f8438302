/** The pages of the console, so that the server and the page agree on what there is. `frames` has no list: a frame belongs to a run. */
const PAGES = {
  now: { isAlone: true, withId: false },
  runs: { isAlone: true, withId: true },
  frames: { isAlone: false, withId: true },
  programs: { isAlone: true, withId: true },
  webhooks: { isAlone: true, withId: true },
  system: { isAlone: true, withId: false },
};
export type PageName = keyof typeof PAGES;

/** The page at `/console/{name}` or `/console/{name}/{id}`; undefined if there is none. */
export function consolePage(name: string, id: string | undefined): PageName | undefined {
  if (!Object.hasOwn(PAGES, name)) return undefined;
  const page = name as PageName;
  return (id === undefined ? PAGES[page].isAlone : PAGES[page].withId) ? page : undefined;
}
