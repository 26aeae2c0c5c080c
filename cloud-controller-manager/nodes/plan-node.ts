import type { Instance, Zone } from '../../cloud/cloud.ts';
import { type ProviderIdForm, renderProviderId } from '../../cloud/provider-id.ts';
import { INSTANCE_TYPE_LABEL, ZONE_LABEL } from '../../crd/foreign-names.ts';
import { NODE_SEEN_INSTANCE_ANNOTATION } from '../../crd/names.ts';
import { type CloudNode, type NodeAddress, UNINITIALIZED_TAINT } from './cloud-node.ts';
import { PROVIDED_IP_ANNOTATION, planAddresses } from './plan-addresses.ts';
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

/** How zone and region are written in labels: upstream's names, or as TKE does the zone's number and a short region. */
type ZoneLabelForm = 'name' | 'number';

/** Labels of a Node. */
type NodeLabels = {
  /** What the instance has, which a resize changes: kept as the instance has it. */
  readonly resources: Readonly<Record<string, string>>;
  /** Well-known ones of its place: the cloud provider owns them. */
  readonly wellKnown: Readonly<Record<string, string>>;
  /** Further ones: only written where there is none. */
  readonly extra: Readonly<Record<string, string>>;
};

/** TKE's short names of regions. A region that is not listed is written with its whole name. */
const SHORT_REGIONS: Readonly<Record<string, string>> = {
  'ap-bangkok': 'th',
  'ap-beijing': 'bj',
  'ap-chengdu': 'cd',
  'ap-chongqing': 'cq',
  'ap-guangzhou': 'gz',
  'ap-hongkong': 'hk',
  'ap-jakarta': 'jkt',
  'ap-nanjing': 'nj',
  'ap-seoul': 'kr',
  'ap-shanghai': 'sh',
  'ap-singapore': 'sg',
  'ap-tokyo': 'jp',
  'eu-frankfurt': 'de',
  'na-ashburn': 'use',
  'na-siliconvalley': 'usw',
  'sa-saopaulo': 'sao',
};

/** Plans the labels of a Node. `zone` is that of the instance. */
function planLabels(
  { instanceType, cores, memoryGib }: Pick<Instance, 'instanceType' | 'cores' | 'memoryGib'>,
  zone: Zone,
  form: ZoneLabelForm,
): NodeLabels {
  const regionName = zone.name.replace(/-\d+$/, '');
  const zoneText = form === 'name' ? zone.name : zone.number;
  const region = form === 'name' ? regionName : (SHORT_REGIONS[regionName] ?? regionName);
  return {
    resources: withoutEmpty({
      [INSTANCE_TYPE_LABEL]: instanceType,
      'beta.kubernetes.io/instance-type': instanceType,
      'node.tke.cloud.tencent.com/cpu': cores === 0 ? '' : String(cores),
      'node.tke.cloud.tencent.com/memory': memoryGib === undefined ? '' : String(memoryGib),
    }),
    wellKnown: withoutEmpty({
      [ZONE_LABEL]: zoneText,
      'failure-domain.beta.kubernetes.io/zone': zoneText,
      'topology.kubernetes.io/region': region,
      'failure-domain.beta.kubernetes.io/region': region,
    }),
    extra: withoutEmpty({ 'topology.com.tencent.cloud.csi.cbs/zone': zone.name }),
  };
}

function withoutEmpty(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== ''));
}
