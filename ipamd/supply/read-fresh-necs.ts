import { compareVersions } from '../../kube/compare-versions.ts';
import { NECS } from './nec-access.ts';
import type { NodeDeps } from './node-deps.ts';

const PAGE_SIZE = 500;
/** Without an API server nothing can be written: supply waits. */
const RETRY_MS = 1_000;

/**
 * Reads all NodeENIConfigs past the watch, so that the first look of a new leader at a node shows no state from before
 * its term: the watch of a standby may be behind, for minutes when its connection is dead. What a former leader wrote
 * last would count as an edit of another client otherwise, and would be undone. Keeps only what the cache lacks. Repeats
 * until it is done. Rejects with the signal's reason.
 */
export async function readFreshNecs(
  deps: Pick<NodeDeps, 'kube' | 'necs' | 'memory' | 'clock' | 'log'>,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    try {
      return await readPages(deps, signal);
    } catch (error) {
      signal.throwIfAborted();
      deps.log.warn('the NodeENIConfigs cannot be read, supply waits', { error });
    }
    await deps.clock.sleep(RETRY_MS, signal);
  }
}

async function readPages(
  { kube, necs, memory }: Pick<NodeDeps, 'kube' | 'necs' | 'memory'>,
  signal: AbortSignal,
): Promise<void> {
  let continueToken: string | undefined;
  do {
    const token = continueToken === undefined ? {} : { continueToken };
    const page = await kube.listPage(NECS, { limit: PAGE_SIZE, ...token }, signal);
    for (const object of page.items) {
      const { name } = object.metadata;
      const cached = necs.get(name);
      const order = cached === undefined ? undefined : compareVersions(cached.object.metadata, object.metadata);
      if (order === undefined || order < 0) memory.of(name).written = object;
    }
    continueToken = page.continueToken;
  } while (continueToken !== undefined);
}
