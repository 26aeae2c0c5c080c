import { IDS_PER_CALL } from '../batches.ts';

/** One page: its objects, and how many there are on all pages. */
type Page<T> = { readonly objects: readonly T[]; readonly total: number };

/** All pages; `isConsistent` is false when the number of objects changed between them. */
type Paged<T> = { readonly objects: readonly T[]; readonly isConsistent: boolean };

/** Most pages of one sweep: 200,000 objects, twenty times those of the largest VPC. */
const MAX_PAGES = 2_000;

/** Most attempts to read all pages while nothing changes. */
const MAX_SWEEPS = 3;

/**
 * Reads every page, each object once. Pages are selected by offset: a deletion meanwhile moves later objects onto a
 * page that was read already. A sweep during which the total changed is repeated; `isConsistent` reports when all
 * attempts were affected.
 */
export async function readPages<T>(
  readPage: (offset: number) => Promise<Page<T>>,
  idOf: (object: T) => string,
): Promise<Paged<T>> {
  let found: Paged<T> = { objects: [], isConsistent: false };
  for (let sweep = 1; sweep <= MAX_SWEEPS && !found.isConsistent; sweep++) found = await readOnce(readPage, idOf);
  return found;
}

async function readOnce<T>(
  readPage: (offset: number) => Promise<Page<T>>,
  idOf: (object: T) => string,
): Promise<Paged<T>> {
  const byId = new Map<string, T>();
  const totals = new Set<number>();
  for (let page = 0; page < MAX_PAGES; page++) {
    const { objects, total } = await readPage(page * IDS_PER_CALL);
    totals.add(total);
    for (const object of objects) byId.set(idOf(object), object);
    if (objects.length < IDS_PER_CALL || (page + 1) * IDS_PER_CALL >= total) break;
  }
  return { objects: [...byId.values()], isConsistent: totals.size === 1 && totals.has(byId.size) };
}
