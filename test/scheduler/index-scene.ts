import type { KubeObject } from '../../kube/kube-client.ts';
import { type ClaimFacts, readClaim, readNec, readNode, readVip } from '../../scheduler/index/facts.ts';
import { readPodRequest } from '../../scheduler/index/pod-request.ts';
import { SchedulerIndex } from '../../scheduler/index/scheduler-index.ts';

/** One moment for all. */
export const NOW = { wallMs: Date.parse('2026-01-31T12:00:00Z'), monotonicMs: 5_000_000 };
/** How long reservations hold. */
export const TTL_MS = 120_000;

/** Objects of a cluster. */
export type Objects = {
  readonly nodes?: readonly KubeObject[];
  readonly necs?: readonly KubeObject[];
  readonly pods?: readonly KubeObject[];
  readonly claims?: readonly KubeObject[];
  readonly vips?: readonly KubeObject[];
};

/** Sets a claim of namespace default; the age of its reservation is that of the one moment. */
export function setClaim(index: SchedulerIndex, name: string, facts: ClaimFacts | undefined): void {
  const since = facts?.reserved?.since;
  const ageMs = since === undefined ? 0 : Math.max(0, NOW.wallMs - Date.parse(since));
  index.setClaim(`default/${name}`, facts, { ageMs, monotonicMs: NOW.monotonicMs });
}

/** Builds an index of objects from nothing. */
export function rebuilt({ nodes = [], necs = [], pods = [], claims = [], vips = [] }: Objects): SchedulerIndex {
  const index = new SchedulerIndex(TTL_MS);
  for (const node of nodes) index.setNode(node.metadata.name, readNode(node));
  for (const nec of necs) index.setNec(nec.metadata.name, readNec(nec));
  for (const pod of pods) index.setPod(pod.metadata.uid ?? '', readPodRequest(pod));
  for (const claim of claims) setClaim(index, claim.metadata.name, readClaim(claim));
  for (const vip of vips) index.setVip(vip.metadata.name, readVip(vip));
  index.expire(NOW);
  return index;
}
