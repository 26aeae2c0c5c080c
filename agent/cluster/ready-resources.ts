import { ENI_IP_RESOURCE } from '../../crd/names.ts';
import type { SeenNec } from '../demand/publication.ts';

/** What the node says that it serves. */
export type ReadyResources = {
  /**
   * @param life Name of this agent's journal.
   * @param served What it serves when it is ready.
   */
  of(isReady: boolean, seen: SeenNec, life: string, nowMs: number, served?: readonly string[]): readonly string[];
};

/** A repair pass that fails once, and a restart, are over in less; a taint that comes and goes moves Pods elsewhere. */
export const UNREADY_GRACE_MS = 30_000;

/**
 * Follows whether the node serves. It does so at once when it is ready; it stops only when it has not been for a while,
 * unless it just began its life: then what the object says is another's word. Times are monotonic.
 */
export function createReadyResources(startedMs: number): ReadyResources {
  let unreadySinceMs: number | undefined = startedMs;
  return {
    of: (isReady, seen, life, nowMs, served = [ENI_IP_RESOURCE]) => {
      unreadySinceMs = isReady ? undefined : (unreadySinceMs ?? nowMs);
      if (unreadySinceMs === undefined) return served;
      const isBrief = nowMs - unreadySinceMs < UNREADY_GRACE_MS;
      return isBrief && seen.spec.life === life ? seen.spec.readyResources : [];
    },
  };
}
