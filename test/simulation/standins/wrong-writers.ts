import {
  API_VERSION,
  NODE_ANNOTATION,
  NODE_ENI_CONFIG_ANNOTATION,
  NODE_SUBNETS_LABEL,
  POD_ANNOTATION,
} from '../../../crd/names.ts';
import type { KubeObject, ResourceType } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { CONFIG_MAPS, NODE_ENI_CONFIGS, NODES, VPC_IP_CLAIMS, VPC_IPS } from '../../../kube/resource-types.ts';
import type { Machine } from '../machine.ts';
import type { Stage } from '../stage.ts';

/** What people write that makes no sense, or is not theirs to say. */
export const WRONG_INPUT = [
  'annotations of a Pod',
  'annotations of a NodeENIConfig',
  'annotations of a Node',
  'subnets of a Node',
  'policy of a NodeENIConfig',
  'subnets of the cluster',
  'a claim',
  'a VpcIP',
  'a second Node of an instance',
] as const;

/** Something wrong, with all its choices. */
export type WrongInput = {
  readonly what: (typeof WRONG_INPUT)[number];
  /** Of the object that is made, where one is. */
  readonly name: string;
  /** Chooses among the wrong values. */
  readonly choice: number;
};

type Texts = Readonly<Record<string, string>>;
/** Takes back what is wrong, also again. */
export type TakeBack = () => Promise<void>;

/** Writes something wrong, about a node or the addresses of others. */
export async function writeWrong(
  stage: Stage,
  machine: Machine,
  { what, name, choice }: WrongInput,
): Promise<TakeBack> {
  const { admin } = stage.world;
  const one = <T>(all: readonly T[]): T => {
    const chosen = all[choice % all.length];
    if (chosen === undefined) throw new Error('there is nothing to choose from');
    return chosen;
  };
  const change = async (type: ResourceType, ref: KubeObject['metadata'], body: object): Promise<void> => {
    await stage.people(admin.patch(type, ref, { kind: 'merge', body }).catch(ignoreGone));
  };
  const make = async (type: ResourceType, object: KubeObject): Promise<TakeBack> => {
    await stage.people(admin.create(type, object));
    return async () => await stage.people(admin.delete(type, object.metadata).catch(ignoreGone));
  };
  const set = async (type: ResourceType, lift: (values: object) => object, values: object): Promise<TakeBack> => {
    await change(type, machine, lift(values));
    const none = Object.fromEntries(Object.keys(values).map((key) => [key, null]));
    return async () => await change(type, machine, lift(none));
  };
  // Of others, where there are any.
  const ip = one([...stage.world.machines.flatMap(({ agent }) => agent.addresses), '10.1.0.1']);
  switch (what) {
    case 'annotations of a Pod':
      await stage.create(name, machine, { annotations: one(podAnnotations(ip)) });
      return async () => await stage.delete(name).catch(ignoreGone);
    case 'annotations of a NodeENIConfig':
      return await set(NODE_ENI_CONFIGS, (annotations) => ({ metadata: { annotations } }), one(NEC_ANNOTATIONS));
    case 'annotations of a Node':
      return await set(NODES, (annotations) => ({ metadata: { annotations } }), one(NODE_ANNOTATIONS));
    case 'subnets of a Node':
      return await set(NODES, (labels) => ({ metadata: { labels } }), {
        [NODE_SUBNETS_LABEL]: one(['what-is-this', 'subnet-nowhere1', '']),
      });
    case 'policy of a NodeENIConfig':
      return await set(NODE_ENI_CONFIGS, (spec) => ({ spec }), one(POLICIES));
    case 'subnets of the cluster':
      await change(CONFIG_MAPS, OF_IPAMD, { data: { ...stage.world.config, ...one(SUBNETS) } });
      return async () => await change(CONFIG_MAPS, OF_IPAMD, { data: stage.world.config });
    case 'a claim':
      return await make(VPC_IP_CLAIMS, claimOf(name, machine, ip, one(['Pending', 'Bound', 'Retained', 'Releasing'])));
    case 'a VpcIP':
      return await make(VPC_IPS, vpcIpOf(name, machine, ip));
    case 'a second Node of an instance': {
      const spec = { providerID: `qcloud:///100003/${machine.instanceId}` };
      return await make(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name }, spec });
    }
  }
}

const OF_IPAMD = { namespace: 'kube-system', name: 'tke-eni-ipamd' } as const;
const SUBNET_KEY = 'TKE_ENI_IPAMD_SUBNET_ID';

/** Annotations of Pods: values that cannot be read, and addresses that are those of others. */
function podAnnotations(ip: string): readonly Texts[] {
  const { networks, deletePolicy, claimExpiredDuration, nominatedVpcIp, nominatedSubnets } = POD_ANNOTATION;
  const kept = { [networks]: 'tke-route-eni', [deletePolicy]: 'Never' };
  return [
    { [networks]: 'tke-no-network' },
    { [networks]: 'tke-route-eni,tke-direct-eni' },
    { [networks]: '{"name":' },
    { [deletePolicy]: 'Sometimes' },
    { ...kept, [claimExpiredDuration]: 'soon' },
    { ...kept, [claimExpiredDuration]: '-1h' },
    { ...kept, [claimExpiredDuration]: '9999999999999h' },
    { ...kept, [nominatedVpcIp]: ip },
    { ...kept, [nominatedVpcIp]: 'not-an-address' },
    { ...kept, [nominatedVpcIp]: '8.8.8.8' },
    { ...kept, [nominatedVpcIp]: '10.0.0.249' },
    { ...kept, [nominatedSubnets]: 'subnet-nowhere1' },
    { ...kept, [nominatedSubnets]: 'subnet-nodes000' },
    { ...kept, [POD_ANNOTATION.vpcIpAllocation]: JSON.stringify({ ip, uid: 'of-another' }) },
    { [POD_ANNOTATION.eipAttributes]: '{"Bandwidth":-1}' },
    { [POD_ANNOTATION.securityGroups]: 'sg-nobody01;' },
    { [POD_ANNOTATION.eipPublicIp]: ip },
  ];
}

const NEC = NODE_ENI_CONFIG_ANNOTATION;
const NEC_ANNOTATIONS: readonly Texts[] = [
  { [NEC.routeMinWarm]: '5' },
  { [NEC.routeMinWarm]: '9', [NEC.routeMaxWarm]: '3' },
  { [NEC.routeMinWarm]: 'many', [NEC.routeMaxWarm]: '3' },
  { [NEC.routeMinWarm]: '1', [NEC.routeMaxWarm]: '99999999' },
  { [NEC.directMinWarm]: '2', [NEC.directMaxWarm]: '1.5' },
  { [NEC.routeMaxAttach]: '65' },
  { [NEC.routeMaxAttach]: '-1' },
  { [NEC.maxIpPerEni]: '5000' },
  { [NEC.maxIpPerEni]: '' },
];
const NODE_ANNOTATIONS: readonly Texts[] = [
  { [NODE_ANNOTATION.desiredPodNum]: 'ten' },
  { [NODE_ANNOTATION.desiredPodNum]: '999999999' },
  { [NODE_ANNOTATION.disableEni]: 'yes' },
  { [NODE_ANNOTATION.disableSecurityGroups]: 'true' },
  { [NODE_ANNOTATION.syncSecurityGroups]: '1' },
];
const POLICIES = [
  { subnetIDs: ['subnet-nowhere1'] },
  { securityGroups: ['sg-nobody01'] },
  { maxRouteENI: 64, maxIPPerENI: 4096 },
] as const;
const SUBNETS: readonly Texts[] = [
  { [SUBNET_KEY]: 'subnet_bad,subnet-x' },
  { [SUBNET_KEY]: '' },
  { [SUBNET_KEY]: 'subnet-podsa000:subnet-nowhere1' },
  { [SUBNET_KEY]: 'subnet-nowhere1' },
  { TKE_ENI_IPAMD_VPC_ID: 'vpc-other001' },
];

/** A claim that says an address of another Pod is its own. */
function claimOf(name: string, machine: Machine, ip: string, phase: string): KubeObject {
  const spec = { mode: 'route-eni', deletePolicy: 'Never', nominatedIP: ip, nodeName: machine.name };
  const status = { phase, ips: [ip], vpcIPs: [ip], nodeName: machine.name };
  const metadata = { name, namespace: 'default' };
  return { apiVersion: API_VERSION, kind: 'VpcIPClaim', metadata, spec, status };
}

function vpcIpOf(name: string, machine: Machine, ip: string): KubeObject {
  const claimRef = { namespace: 'default', name };
  const spec = { ip, type: 'Pod', subnetID: 'subnet-podsa000', claimRef, nodeName: machine.name };
  return { apiVersion: API_VERSION, kind: 'VpcIP', metadata: { name: ip }, spec };
}

function ignoreGone(error: unknown): void {
  if (!isKubeError(error, 'NOT_FOUND')) throw error;
}
