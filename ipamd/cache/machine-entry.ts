import { instanceIdOf } from '../../cloud/provider-id.ts';
import { NODE_INSTANCE_LABEL } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isRecord } from '../../runtime/decode.ts';
import { recordOf } from '../../runtime/json.ts';
import type { NodeEntry } from './node-entry.ts';

/** What ipamd caches of a Machine of `node.tke.cloud.tencent.com`: its instance, and the possible names of its node. */
export type MachineEntry = { readonly instanceId: string; readonly nodeNames: readonly string[] };

/** Name of the index of Machines by the possible names of their nodes. */
const MACHINES_BY_NODE = 'node';
/** Indexes of the informer of Machines. */
export const MACHINE_INDEXES = { [MACHINES_BY_NODE]: (machine: MachineEntry): readonly string[] => machine.nodeNames };

/**
 * Decodes a Machine; undefined when it names no instance. Its schema is not published, so every field that may contain
 * the instance or the node is read.
 */
export function decodeMachine(object: KubeObject): MachineEntry | undefined {
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
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
  const nodeRef = recordOf(status['nodeRef'])['name'];
  const names = [nodeRef, name, labels['kubernetes.io/hostname'], ...addressesOf(status['addresses'])];
  return { instanceId, nodeNames: [...new Set(names.filter((one) => typeof one === 'string'))] };
}

/** The part of an informer of Machines that is needed: its index by {@link MACHINES_BY_NODE}. */
export type MachineView = { byIndex(name: string, value: string): readonly MachineEntry[] };

/** Finds the instance of a Node: from the Node itself, else from a Machine with its name or one of its addresses. */
export function findInstanceId(node: NodeEntry, machines: MachineView | undefined): string | undefined {
  if (node.instanceId !== undefined || machines === undefined) return node.instanceId;
  const ids = new Set(
    [node.name, ...node.addresses].flatMap((name) =>
      machines.byIndex(MACHINES_BY_NODE, name).map(({ instanceId }) => instanceId),
    ),
  );
  // Two Machines for one name: neither is reliable.
  return ids.size === 1 ? [...ids][0] : undefined;
}

function addressesOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) return [];
  return value.map((one: unknown) => (isRecord(one) ? one['address'] : one));
}
