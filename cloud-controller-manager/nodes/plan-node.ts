import type { Instance, Zone } from '../../cloud/cloud.ts';
import { type ProviderIdForm, renderProviderId } from '../../cloud/provider-id.ts';
import { NODE_SEEN_INSTANCE_ANNOTATION } from '../../crd/names.ts';
import { type CloudNode, type NodeAddress, UNINITIALIZED_TAINT } from './cloud-node.ts';
import { PROVIDED_IP_ANNOTATION, planAddresses } from './plan-addresses.ts';
import { planLabels, type ZoneLabelForm } from './plan-labels.ts';
import { renderSeen } from './seen-instance.ts';

/** How Nodes are written. */
type NodeForms = {
  readonly providerIdForm: ProviderIdForm;
  readonly zoneLabels: ZoneLabelForm;
  /** A route to the Pods of each Node is to come: until then its network is unavailable. */
  readonly expectsRoutes: boolean;
};

/** What is written to a Node, in this order. Absent: nothing. */
export type NodePlan =
  | {
      readonly kind: 'write';
      /** Status NetworkUnavailable=True, before the taint that keeps Pods off is removed. */
      readonly isNetworkPending: boolean;
      readonly addresses?: readonly NodeAddress[];
      /** Fields of a merge patch of the Node. */
      readonly metadata?: Readonly<Record<string, Readonly<Record<string, string>>>>;
      readonly spec?: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: 'problem'; readonly message: string };

/** Plans what a Node gets of its instance. A Node that has everything gets an empty plan. */
export function planNode(node: CloudNode, instance: Instance, zone: Zone, forms: NodeForms): NodePlan {
  const planned = planAddresses(node, instance);
  if (planned.kind === 'foreign') {
    const message = `${PROVIDED_IP_ANNOTATION} ${planned.ip} is no address of ${instance.instanceId}; start the kubelet with an address of its instance as --node-ip`;
    return { kind: 'problem', message };
  }
  if (planned.kind === 'none' && node.isUninitialized)
    return { kind: 'problem', message: `the cloud reports no address of ${instance.instanceId} yet` };
  const addresses =
    planned.kind === 'addresses' && !areEqual(planned.addresses, node.addresses) ? planned.addresses : undefined;
  const labels = labelsOf(node, instance, zone, forms);
  const seen = renderSeen(instance);
  // An answer without VPC is no reason to forget the one of before.
  const annotations =
    instance.vpcId === '' || node.annotations[NODE_SEEN_INSTANCE_ANNOTATION] === seen
      ? {}
      : { [NODE_SEEN_INSTANCE_ANNOTATION]: seen };
  const spec = specOf(node, instance, zone, forms);
  const metadata = {
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
  };
  return {
    kind: 'write',
    isNetworkPending: forms.expectsRoutes && node.isUninitialized && node.networkUnavailable === undefined,
    ...(addresses === undefined ? {} : { addresses }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(Object.keys(spec).length === 0 ? {} : { spec }),
  };
}

function labelsOf(node: CloudNode, instance: Instance, zone: Zone, forms: NodeForms): Readonly<Record<string, string>> {
  const { resources, wellKnown, extra } = planLabels(instance, zone, forms.zoneLabels);
  // The cluster service may have written another form to a Node that it has initialised: that stays.
  const owned = Object.entries(wellKnown).filter(([key, value]) =>
    node.isUninitialized ? node.labels[key] !== value : node.labels[key] === undefined,
  );
  const changed = Object.entries(resources).filter(([key, value]) => node.labels[key] !== value);
  const missing = Object.entries(extra).filter(([key]) => node.labels[key] === undefined);
  return Object.fromEntries([...changed, ...owned, ...missing]);
}

function specOf(
  node: CloudNode,
  { instanceId }: Instance,
  zone: Zone,
  forms: NodeForms,
): Readonly<Record<string, unknown>> {
  const zoneText = forms.providerIdForm === 'qcloud' ? zone.number : zone.name;
  const providerID = renderProviderId(forms.providerIdForm, zoneText, instanceId);
  return {
    ...(node.providerId.kind === 'none' ? { providerID } : {}),
    ...(node.isUninitialized ? { taints: node.taints.filter(({ key }) => key !== UNINITIALIZED_TAINT) } : {}),
  };
}

function areEqual(first: readonly NodeAddress[], second: readonly NodeAddress[]): boolean {
  const texts = (all: readonly NodeAddress[]): string =>
    JSON.stringify(all.map(({ type, address }) => [type, address]));
  return texts(first) === texts(second);
}
