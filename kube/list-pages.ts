import type { KubeClient, ListPage, ObjectQuery, ResourceType } from './kube-client.ts';
import { ANSWER_TOO_LARGE, isKubeError, KubeError } from './kube-error.ts';

/** Objects on one page, unless pages of them are too large. */
const PAGE_SIZE = 500;
/** Most objects of one list: three times the Pods of the largest cluster that Kubernetes is tested with. */
const MAX_OBJECTS = 500_000;
/** What a page counts at least: pages without objects end as well. */
const MIN_PER_PAGE = 50;

/**
 * Reads a collection page by page. A page that is too large is asked for again, half as long. A list that does not end is
 * given up.
 * @throws KubeError EXPIRED when it took too long: list again from the start; BAD_ANSWER when it does not end; others
 */
export async function* listPages(
  client: Pick<KubeClient, 'listPage'>,
  type: ResourceType,
  query: ObjectQuery & { readonly pageSize?: number | undefined },
  signal?: AbortSignal,
): AsyncGenerator<ListPage, void, undefined> {
  const { pageSize = PAGE_SIZE, ...selection } = query;
  const tokens = new Set<string>();
  const endless = (text: string) => new KubeError({ code: 'BAD_ANSWER', request: `LIST ${type.plural}`, text });
  let limit = pageSize;
  let objects = 0;
  let token: { readonly continueToken?: string } = {};
  for (;;) {
    const page = await client.listPage(type, { ...selection, limit, ...token }, signal).catch((error: unknown) => {
      if (!isKubeError(error) || error.reason !== ANSWER_TOO_LARGE || limit <= 1) throw error;
    });
    if (page === undefined) {
      limit = Math.floor(limit / 2);
      continue;
    }
    yield page;
    const { continueToken } = page;
    if (continueToken === undefined) return;
    objects += Math.max(page.items.length, MIN_PER_PAGE);
    if (objects > MAX_OBJECTS) throw endless(`more than ${MAX_OBJECTS} objects, or pages without any`);
    if (tokens.has(continueToken)) throw endless('a page leads to an earlier one');
    tokens.add(continueToken);
    token = { continueToken };
  }
}
