import { isDeepStrictEqual } from 'node:util';
import { podKeyOf } from '../cache/pod-facts.ts';
import type { ClaimsTerm } from './claims-term.ts';

/** Pods are checked at most once in this time, however often rules change. */
const BATCH_MS = 1_000;

/**
 * Calls `touch` for the claims of Pods whose StaticIPConfig or Deployment may have changed: those of its namespace
 * alone, and only for changes that matter. The status of a Deployment changes often, and every user may write into
 * their own namespace.
 */
export function followRules(
  { config, pods, configs, deployments, clock }: ClaimsTerm,
  touch: (key: string) => void,
  signal: AbortSignal,
): () => void {
  const own = config.namespace;
  const changed = new Set<string>();
  const notify = (): void => {
    for (const pod of pods.values()) {
      const isAffected = pod.claimInfo !== undefined && (changed.has(pod.namespace) || changed.has(own));
      if (isAffected) touch(podKeyOf(pod));
    }
    changed.clear();
  };
  const note = (key: string): void => {
    const isFirst = changed.size === 0;
    changed.add(key.slice(0, key.indexOf('/')));
    if (isFirst) clock.sleep(BATCH_MS, signal).then(notify, () => {});
  };
  const ends = [
    configs.subscribe(({ key, before, after }) => {
      if (!isDeepStrictEqual(before?.decoded?.spec, after?.decoded?.spec)) note(key);
    }),
    deployments?.subscribe(({ key, before, after }) => {
      if (before?.uid !== after?.uid || !isDeepStrictEqual(before?.selector, after?.selector)) note(key);
    }),
  ];
  return () => {
    for (const end of ends) end?.();
  };
}
