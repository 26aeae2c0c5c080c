import { NODE_ANNOTATION } from '../../crd/names.ts';
import type { NodeEniConfig } from '../../crd/node-eni-config.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS, NODES } from '../../kube/resource-types.ts';
import { isRecord } from '../../runtime/decode.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { NodeEntry } from '../cache/node-entry.ts';
import { decideGroupSync } from './decide-security-groups.ts';
import type { KnownNodeFacts } from './node-facts.ts';
import { GROUP_SYNC_MARK, withAnnotation } from './render-config.ts';

/** A node whose security groups may have to be set again. */
type SyncedNode = {
  readonly name: string;
  readonly node: NodeEntry;
  readonly entry: NecEntry;
  readonly config: NodeEniConfig;
};

/**
 * Carries out one step of the Node annotation need-sync-security-groups. First the groups that ENIs were described with
 * are removed from the status, so that each ENI is set again. When all are set, the annotation is removed from the Node.
 * Idempotent.
 * @throws whatever the client throws
 */
export async function continueGroupSync(
  { kube, facts }: { readonly kube: KubeClient; readonly facts: Pick<KnownNodeFacts, 'securityGroupsOf'> },
  { name, node, entry, config }: SyncedNode,
  signal: AbortSignal,
): Promise<void> {
  const isRequested = node.annotations[NODE_ANNOTATION.syncSecurityGroups] === 'true';
  const isStarted = entry.object.metadata.annotations?.[GROUP_SYNC_MARK] !== undefined;
  if (!isRequested && !isStarted) return;
  const groups = facts.securityGroupsOf(name, config);
  const step = decideGroupSync({ isRequested, isStarted, groups, status: config.status });
  if (step.kind === 'none') return;
  const ref = { name };
  // The request is removed first: a mark without a request is removed next time, but a request without its mark would
  // be started again.
  if (step.kind === 'finish' && isRequested) await kube.patch(NODES, ref, removeRequest(), signal);
  const change = (current: KubeObject): KubeObject | undefined => {
    if (step.kind === 'finish') {
      const isMarked = current.metadata.annotations?.[GROUP_SYNC_MARK] !== undefined;
      return isMarked ? withAnnotation(current, GROUP_SYNC_MARK, undefined) : undefined;
    }
    return withAnnotation(withoutGroups(current), GROUP_SYNC_MARK, 'true');
  };
  await updateGuarded(kube, NODE_ENI_CONFIGS, ref, change, { current: entry.object, signal });
}

function removeRequest() {
  const annotations = { [NODE_ANNOTATION.syncSecurityGroups]: null };
  return { kind: 'merge', body: { metadata: { annotations } } } as const;
}

/** Removes the groups that the ENIs were last described with; everything else stays as written, known or not. */
function withoutGroups(object: KubeObject): KubeObject {
  const status = object['status'];
  if (!isRecord(status) || !Array.isArray(status['eniInfos'])) return object;
  const eniInfos = status['eniInfos'].map((eni: unknown) => {
    if (!isRecord(eni)) return eni;
    const { securityGroups: _, ...rest } = eni;
    return rest;
  });
  return { ...object, status: { ...status, eniInfos } };
}
