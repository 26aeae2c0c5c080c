import { bySeverity, type Finding } from '../../../inspection/catalogue/finding.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import { buildAddressIndex } from './build-address-index.ts';
import type { ClusterFacts } from './cluster-facts.ts';
import { findCloudLeaks } from './find-cloud-leaks.ts';
import { findDuplicates } from './find-duplicates.ts';
import { findOrphanedRecords } from './find-orphaned-records.ts';
import { findStuckWork } from './find-stuck-work.ts';

/** Leaks and duplicates, and what could not be read. */
export type Leaks = {
  /** Errors first. */
  readonly findings: readonly Finding[];
  readonly unseen: readonly UnreadResource[];
};

/** A resource that could not be read, so that the findings do not cover it. */
type UnreadResource = { readonly what: string; readonly why: string; readonly next: string };

/**
 * Returns the findings of one read. Objects younger than `graceMs` are skipped, since an operation on them may be in
 * progress. Findings without an age may also be in progress; compare them with a second read (`intersectLeaks`).
 */
export function findLeaks(facts: ClusterFacts, graceMs: number): Leaks {
  const index = buildAddressIndex(facts.necs);
  const findings = [
    ...findDuplicates(facts, index),
    ...findCloudLeaks(facts, index, graceMs),
    ...findOrphanedRecords(facts, index, graceMs),
    ...findStuckWork(facts, graceMs),
  ];
  return { findings: findings.toSorted(bySeverity), unseen: unreadResources(facts) };
}

/**
 * Returns the findings of the later read that the earlier one contains too. The others were operations in progress. A
 * resource that one of the two could not read counts as unchecked.
 */
export function intersectLeaks(earlier: Leaks, later: Leaks): Leaks {
  const before = new Set(earlier.findings.map(identityOf));
  const unseen = new Map([...earlier.unseen, ...later.unseen].map((one) => [one.what, one]));
  return {
    findings: later.findings.filter((finding) => before.has(identityOf(finding))),
    unseen: [...unseen.values()],
  };
}

function identityOf({ id, subjects }: Finding): string {
  return `${id} ${subjects.join(' ')}`;
}

function unreadResources(facts: ClusterFacts): readonly UnreadResource[] {
  const resources: readonly (readonly [string, Known<unknown> | undefined])[] = [
    ['Nodes', facts.nodes],
    ['Pods', facts.pods],
    ['VpcIPs', facts.vips],
    ['VpcIPClaims', facts.claims],
    ['VpcENIs', facts.venis],
    ['EIPClaims', facts.eips],
    ['the cloud', facts.cloud],
  ];
  const unread = resources.flatMap(([what, fact]) =>
    fact?.kind === 'unknown' ? [{ what, why: fact.why, next: fact.next }] : [],
  );
  const cloud = facts.cloud === undefined ? undefined : ifKnown(facts.cloud);
  if (cloud === undefined || cloud.clusterId !== undefined) return unread;
  const why = 'no ENI of a NodeENIConfig carries the tag of a cluster';
  return [...unread, { what: 'orphaned ENIs', why, next: 'give --cluster-id' }];
}
