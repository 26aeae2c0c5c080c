import { type ProviderId, readProviderId } from '../../cloud/provider-id.ts';
import { isSuperNode } from '../../crd/foreign-names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { recordOf, recordsOf } from '../../runtime/json.ts';

/** An address of a Node: InternalIP, ExternalIP, Hostname, InternalDNS, ExternalDNS. */
export type NodeAddress = { readonly type: string; readonly address: string };

/** A taint as the object contains it, fields that are not read included. */
export type Taint = Readonly<Record<string, unknown>>;

/** What the controllers of Nodes read of a Node. */
export type CloudNode = {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** RFC 3339; '' when the object has none. */
  readonly createdAt: string;
  readonly providerId: ProviderId;
  /** `spec.providerID` as it is written; '' when there is none. */
  readonly providerIdText: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly addresses: readonly NodeAddress[];
  readonly isReady: boolean;
  /** Its condition Ready is Unknown: its kubelet is not heard. */
  readonly isSilent: boolean;
  /** The kubelet was started with an external cloud provider, and no controller has initialised the Node yet. */
  readonly isUninitialized: boolean;
  readonly isLeaving: boolean;
  /** Status of the condition NetworkUnavailable; absent: there is no such condition. */
  readonly networkUnavailable?: string;
  /** Whether the Node may be a CVM instance of this cluster: no super node, native node, or node of another provider. */
  readonly isOurs: boolean;
};

/** Key of the taint of a Node that waits for its cloud provider. */
export const UNINITIALIZED_TAINT = 'node.cloudprovider.kubernetes.io/uninitialized';
/** Reads a Node; accepts any shape. */
export function readCloudNode(object: KubeObject): CloudNode {
  const { name, uid = '', resourceVersion = '', labels = {}, annotations = {} } = object.metadata;
  const { creationTimestamp: createdAt = '', deletionTimestamp } = object.metadata;
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
  const conditions = recordsOf(status['conditions']);
  const statusOf = (type: string): unknown => conditions.find((one) => one['type'] === type)?.['status'];
  const providerId = readProviderId(spec['providerID']);
  const taints = recordsOf(spec['taints']);
  const network = statusOf('NetworkUnavailable');
  return {
    name,
    uid,
    resourceVersion,
    createdAt,
    providerId,
    providerIdText: typeof spec['providerID'] === 'string' ? spec['providerID'] : '',
    labels,
    annotations,
    taints,
    addresses: recordsOf(status['addresses']).map(({ type, address }) => ({
      type: String(type),
      address: String(address),
    })),
    isReady: statusOf('Ready') === 'True',
    isSilent: statusOf('Ready') === 'Unknown',
    isUninitialized: taints.some(({ key }) => key === UNINITIALIZED_TAINT),
    isLeaving: deletionTimestamp !== undefined,
    ...(network === undefined ? {} : { networkUnavailable: String(network) }),
    isOurs: !isSuperNode(labels) && isCvm(providerId),
  };
}

/** A malformed id is no proof of another owner: the Node is reported, and never initialised or deleted. */
function isCvm(providerId: ProviderId): boolean {
  if (providerId.kind === 'instance') return !providerId.isNative;
  return providerId.kind === 'none' || providerId.kind === 'malformed';
}
