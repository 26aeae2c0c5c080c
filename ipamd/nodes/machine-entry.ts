import { NODE_INSTANCE_LABEL } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isRecord } from '../../runtime/decode.ts';
import type { NodeEntry } from './node-entry.ts';
import { instanceIdOf } from './provider-id.ts';

/** What ipamd keeps of a Machine of `node.tke.cloud.tencent.com`: which instance, and what its node may be called. */
export type MachineEntry = { readonly instanceId: string; readonly nodeNames: readonly string[] };

/** The index of an informer of Machines by what their nodes may be called. */
export const MACHINES_BY_NODE = 'node';
/** What the informer of Machines indexes. */
export const MACHINE_INDEXES = { [MACHINES_BY_NODE]: (machine: MachineEntry): readonly string[] => machine.nodeNames };

/**
 * Trims a Machine; undefined when it names no instance. Its schema is not published, so every place where one of its
 * kind has the instance or the node is looked at. Pure.
 */
export function decodeMachine(object: KubeObject): MachineEntry | undefined {
  const spec = isRecord(object['spec']) ? object['spec'] : {};
  const status = isRecord(object['status']) ? object['status'] : {};
  const { name, labels = {}, annotations = {} } = object.metadata;
  const candidates = [
    spec['providerID'],
    status['providerID'],
    ...[spec, status].flatMap((part) => ['instanceID', 'instanceId'].map((key) => part[key])),
    labels[NODE_INSTANCE_LABEL],
    annotations[NODE_INSTANCE_LABEL],
    name,
  ];
  const instanceId = candidates.map(instanceIdOf).find((id) => id !== undefined);
  if (instanceId === undefined) return undefined;
  const nodeRef = isRecord(status['nodeRef']) ? status['nodeRef']['name'] : undefined;
  const names = [nodeRef, name, labels['kubernetes.io/hostname'], ...addressesOf(status['addresses'])];
  return { instanceId, nodeNames: [...new Set(names.filter((one) => typeof one === 'string'))] };
}

/** What is asked for Machines: an informer's index by {@link MACHINES_BY_NODE}. */
export type MachineView = { byIndex(name: string, value: string): readonly MachineEntry[] };

/** Finds the instance of a Node: its own word first, then a Machine that goes by its name or one of its addresses. */
export function findInstanceId(node: NodeEntry, machines: MachineView | undefined): string | undefined {
  if (node.instanceId !== undefined || machines === undefined) return node.instanceId;
  const ids = new Set(
    [node.name, ...node.addresses].flatMap((name) =>
      machines.byIndex(MACHINES_BY_NODE, name).map(({ instanceId }) => instanceId),
    ),
  );
  // Two Machines for one name: neither is to be believed.
  return ids.size === 1 ? [...ids][0] : undefined;
}

function addressesOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) return [];
  return value.map((one: unknown) => (isRecord(one) ? one['address'] : one));
}
