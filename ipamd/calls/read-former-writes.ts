import { compareVersions } from '../../kube/compare-versions.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { listPages } from '../../kube/list-pages.ts';
import { NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import { type BackoffSettings, backoffMs } from '../../runtime/backoff.ts';
import { decodeNec } from '../cache/decode-nec.ts';
import type { NodeDeps } from './node-deps.ts';
import { FORMER_WRITES_MS } from './own-state.ts';
import type { Term } from './term.ts';

/** What {@link readFormerWrites} reads and notes. */
type FormerWriteDeps = Pick<NodeDeps, 'kube' | 'necs' | 'memory' | 'clock' | 'log'> & Pick<Term, 'random'>;

const BACKOFF: BackoffSettings = { firstMs: 1_000, maxMs: 30_000, factor: 2, jitter: 0.5 };

/**
 * Reads all NodeENIConfigs past the watch, once the former leader can write nothing more: the watch of a standby may be
 * behind, for minutes when its connection is dead. Until then a status that differs is taken as it is, because the former
 * leader may have written it; from then on another client has ({@link NodeMemories.hasFormerWrites}). Repeats until it is
 * done, or the signal aborts. Rejects only with a fault of ipamd.
 */
export async function readFormerWrites(deps: FormerWriteDeps, signal: AbortSignal): Promise<void> {
  try {
    await deps.clock.sleep(FORMER_WRITES_MS, signal);
    for (let attempt = 1; !(await hasRead(deps, signal)); attempt++) {
      await deps.clock.sleep(backoffMs(BACKOFF, attempt, deps.random()), signal);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function hasRead(deps: FormerWriteDeps, signal: AbortSignal): Promise<boolean> {
  try {
    for await (const { items } of listPages(deps.kube, NODE_ENI_CONFIGS, {}, signal))
      for (const object of items) noteRead(deps, object);
  } catch (error) {
    signal.throwIfAborted();
    deps.log.warn('NodeENIConfigs cannot be read past the watch; edits of others are not undone yet', { error });
    return false;
  }
  deps.memory.hasFormerWrites = true;
  return true;
}

/** Notes an object that this leader did not write: it counts as it is now, also where the cache is behind. */
function noteRead({ necs, memory }: FormerWriteDeps, object: KubeObject): void {
  const { name } = object.metadata;
  const cached = necs.get(name);
  const order = cached === undefined ? undefined : compareVersions(cached.object.metadata, object.metadata);
  const isBehind = order === undefined || order < 0;
  const known = memory.find(name);
  if (known?.own.isWritten === true || (known === undefined && !isBehind)) return;
  const entry = decodeNec(object);
  const { decoded } = entry;
  memory.of(name).own.takeFormer(object.metadata.uid ?? '', decoded && (decoded.status ?? {}));
  if (isBehind) necs.note(name, entry);
}
