import type { Eni } from '../../cloud/cloud.ts';
import { ENI_TAG } from '../../crd/cloud-tags.ts';
import { isRecord } from '../../runtime/decode.ts';

/** Ids and names in the cluster's objects: an ENI that matches any of them is no orphan. */
export type EniNames = {
  /** Ids of ENIs, from status and intents of objects. */
  readonly eniIds: ReadonlySet<string>;
  /** Deterministic names of ENIs that an intent may be creating. */
  readonly resourceNames: ReadonlySet<string>;
  /** Instances of the cluster's nodes. */
  readonly instanceIds: ReadonlySet<string>;
  /** Nodes whose object is unreadable or not reliable now: an ENI with their tag may be theirs. */
  readonly unreadableNodes: ReadonlySet<string>;
};

/** An object that may name ENIs: a NodeENIConfig, or another kind that has intents. */
export type NamingObject = {
  readonly name: string;
  /** As the API server has it, whole. */
  readonly object: unknown;
  /** False when its content may not be the present state: it cannot be decoded, or an old state was restored. */
  readonly isTrusted: boolean;
};

const ENI_ID = /^eni-[a-z0-9]+$/;
const INSTANCE_ID = /^ins-[a-z0-9]+$/;
/** Objects are not deeper than this; JSON has no cycles. */
const MAX_DEPTH = 32;

/**
 * Collects every id of an ENI or instance, and every resource name, anywhere in the objects: in known and unknown
 * fields, valid or not. A missed one would cost a Pod its network; a superfluous one only leaves an ENI undeleted.
 */
export function collectEniNames(objects: Iterable<NamingObject>, instanceIds: Iterable<string>): EniNames {
  const names = {
    eniIds: new Set<string>(),
    resourceNames: new Set<string>(),
    instanceIds: new Set(instanceIds),
    unreadableNodes: new Set<string>(),
  };
  const visit = (value: unknown, key: string, depth: number): void => {
    if (depth > MAX_DEPTH) return;
    if (typeof value === 'string') {
      if (key === 'resourceName') names.resourceNames.add(value);
      else if (ENI_ID.test(value)) names.eniIds.add(value);
      else if (INSTANCE_ID.test(value)) names.instanceIds.add(value);
    } else if (Array.isArray(value)) {
      for (const item of value) visit(item, key, depth + 1);
    } else if (isRecord(value)) {
      for (const [name, item] of Object.entries(value)) if (name !== 'managedFields') visit(item, name, depth + 1);
    }
  };
  for (const { name, object, isTrusted } of objects) {
    visit(object, '', 0);
    if (!isTrusted) names.unreadableNodes.add(name);
  }
  return names;
}

/** Tells whether any of the objects names an ENI, or has the instance that it is on, or may be an unreadable owner. */
export function isNamed({ eniId, name, attachment, tags }: Eni, names: EniNames): boolean {
  if (names.eniIds.has(eniId) || names.resourceNames.has(name)) return true;
  if (attachment !== undefined && names.instanceIds.has(attachment.instanceId)) return true;
  return names.unreadableNodes.has(tags[ENI_TAG.node] ?? '');
}
