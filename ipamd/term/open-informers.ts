import type { StaticIpRule } from '../../crd/select-static-ip-config.ts';
import { staticIpConfig } from '../../crd/static-ip-config.ts';
import { type Informer, type InformerObserver, type InformerOptions, openInformer } from '../../kube/informer.ts';
import type { KubeClient, KubeObject, ResourceType } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import {
  CILIUM_NODES,
  CONFIG_MAPS,
  DEPLOYMENTS,
  EIP_CLAIMS,
  MACHINES,
  NODE_ENI_CONFIGS,
  NODES,
  PODS,
  STATIC_IP_CONFIGS,
  VPC_ENIS,
  VPC_IP_CLAIMS,
  VPC_IPS,
} from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import { Faults } from '../../runtime/decode.ts';
import type { Logger } from '../../runtime/log.ts';
import { type ConfigMapEntry, decodeConfigMap } from '../cache/config-map-entry.ts';
import { decodeNec, type NecEntry } from '../cache/decode-nec.ts';
import { DEPLOYMENT_BOUNDS, type DeploymentFacts, decodeDeployment } from '../cache/find-workload.ts';
import { decodeMachine, MACHINE_INDEXES, type MachineEntry } from '../cache/machine-entry.ts';
import { decodeNode, type NodeEntry } from '../cache/node-entry.ts';
import { createPodDecoder, POD_BOUNDS, POD_INDEXES, type PodFacts } from '../cache/pod-facts.ts';
import {
  CLAIM_BOUNDS,
  CLAIM_INDEXES,
  type ClaimFacts,
  decodeClaim,
  decodeVip,
  type StaticObject,
  VIP_INDEXES,
  type VipFacts,
} from '../cache/record-facts.ts';
import { NECS_BY_REGISTERED_IP, readRegisteredIps } from '../cache/registered-ips.ts';
import { decodeVpcEni, VPC_ENI_INDEXES, type VpcEniEntry } from '../cache/vpc-eni-entry.ts';
import type { Term } from '../calls/term.ts';
import type { IpamdConfig } from '../config/options.ts';
import { NECS_BY_CLAIM, NECS_BY_MARKED_IP, readClaimKeys, readMarkedIps } from '../decide/mark-indexes.ts';
import { BY_EXCLUSIVE_ENI, exclusiveEniIdsOf } from '../exclusive/run-vpc-enis.ts';
import { CILIUM_NODE_INDEXES, type CiliumNodeEntry, decodeCiliumNode } from '../guests/cilium/cilium-node-entry.ts';
import { decodeEipClaim, EIP_CLAIM_BOUNDS, type EipClaimEntry } from '../guests/eip/eip-claim-cache.ts';
import { MASQ_CONFIG_MAP } from '../guests/eip/sync-masq-config.ts';
import { CONFIGS_BY_NAMESPACE } from '../guests/static/build-claim-view.ts';

/** Dependencies of informers. */
export type InformerDeps = {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly observer: InformerObserver;
};

/** Name of the indexes of nodes and NodeENIConfigs by their instance. */
export const BY_INSTANCE = 'instance';

/** Informers of every replica, leader or not: so a new leader has filled caches. */
export type Informers = Pick<Term, 'necs' | 'nodes' | 'pods' | 'vpcEnis' | 'configMaps'>;

/** Opens the informers of every replica; nothing is read before they are started. */
export function openInformers(deps: InformerDeps, config: IpamdConfig): Informers {
  const query = { namespace: config.namespace, fieldSelector: `metadata.name=${config.configMap}` };
  return {
    necs: open<NecEntry>(deps, NODE_ENI_CONFIGS, {
      decode: decodeNec,
      indexes: {
        [BY_INSTANCE]: ({ decoded }) => listOf(decoded?.status?.instanceID),
        [BY_EXCLUSIVE_ENI]: exclusiveEniIdsOf,
        [NECS_BY_CLAIM]: ({ decoded }) => readClaimKeys(decoded?.status),
        [NECS_BY_MARKED_IP]: ({ decoded }) => readMarkedIps(decoded?.status),
        [NECS_BY_REGISTERED_IP]: readRegisteredIps,
      },
    }),
    nodes: open<NodeEntry>(deps, NODES, {
      decode: decodeNode,
      indexes: { [BY_INSTANCE]: ({ instanceId }) => listOf(instanceId) },
    }),
    pods: open<PodFacts>(deps, PODS, { decode: createPodDecoder(), indexes: POD_INDEXES, bounds: POD_BOUNDS }),
    vpcEnis: open<VpcEniEntry>(deps, VPC_ENIS, { decode: decodeVpcEni, indexes: VPC_ENI_INDEXES }),
    configMaps: open<ConfigMapEntry>(deps, CONFIG_MAPS, { decode: decodeConfigMap, query }),
  };
}

/** Opens the informer of Machines, which contain the instances of native nodes; only if the cluster has Machines. */
function openMachines(deps: InformerDeps): Informer<MachineEntry> {
  return open<MachineEntry>(deps, MACHINES, { decode: decodeMachine, indexes: MACHINE_INDEXES });
}

/** Further informers of the leader: nothing waits for them before it leads. */
export type TermInformers = ReturnType<typeof openTermInformers>;

/** Opens the informers of one term of leadership. */
export function openTermInformers(deps: InformerDeps, { enableOwnerref, eipIpMasq }: IpamdConfig) {
  const { namespace, name } = MASQ_CONFIG_MAP;
  const masqQuery = { namespace, fieldSelector: `metadata.name=${name}` };
  return {
    /** Records of Pods, and static addresses. */
    vips: open<VipFacts>(deps, VPC_IPS, { decode: decodeVip, indexes: VIP_INDEXES }),
    claims: open<ClaimFacts>(deps, VPC_IP_CLAIMS, {
      decode: decodeClaim,
      indexes: CLAIM_INDEXES,
      bounds: CLAIM_BOUNDS,
    }),
    configs: open<StaticObject<StaticIpRule>>(deps, STATIC_IP_CONFIGS, {
      decode: decodeStaticIpConfig,
      indexes: { [CONFIGS_BY_NAMESPACE]: ({ decoded }) => listOf(decoded?.metadata.namespace) },
      bounds: STATIC_IP_CONFIG_BOUNDS,
    }),
    deployments: enableOwnerref
      ? open<DeploymentFacts>(deps, DEPLOYMENTS, { decode: decodeDeployment, bounds: DEPLOYMENT_BOUNDS })
      : undefined,
    eipClaims: open<EipClaimEntry>(deps, EIP_CLAIMS, { decode: decodeEipClaim, bounds: EIP_CLAIM_BOUNDS }),
    /** The configuration of ip-masq-agent, whether it exists or not. */
    masqConfigs: eipIpMasq
      ? open<KubeObject>(deps, CONFIG_MAPS, { decode: (object) => object, query: masqQuery })
      : undefined,
  };
}

/** Decodes a StaticIPConfig for an informer: name and spec, as nothing else of it is read or written. */
function decodeStaticIpConfig(object: KubeObject): StaticObject<StaticIpRule> {
  const faults = new Faults();
  const { metadata, spec } = staticIpConfig(object, '', faults) ?? {};
  if (metadata === undefined || faults.list.length > 0) return { decoded: undefined, faults: faults.list };
  const { name, namespace } = metadata;
  const named = { name, ...(namespace === undefined ? {} : { namespace }) };
  return { decoded: { metadata: named, ...(spec === undefined ? {} : { spec }) }, faults: [] };
}

/** What is kept of StaticIPConfigs; all count, as each look compares a Pod with every rule of its namespace. */
const STATIC_IP_CONFIG_BOUNDS = {
  objectBytes: 524_288,
  namespaceBytes: 8 * 1_048_576,
  smallBytes: 0,
  instead: (_: KubeObject, __: string, got: string): StaticObject<StaticIpRule> => ({
    decoded: undefined,
    faults: [{ path: '', expected: 'fewer or smaller StaticIPConfigs', got }],
  }),
};

function open<T>(
  deps: InformerDeps,
  type: ResourceType,
  options: Pick<InformerOptions<T>, 'decode' | 'indexes' | 'query' | 'bounds'>,
): Informer<T> {
  return openInformer<T>({ ...deps, type, ...options });
}

function listOf(id: string | undefined): readonly string[] {
  return id === undefined ? [] : [id];
}

/** Informer of Machines, if the cluster has them. */
export type MachineFollower = {
  /** Undefined while the cluster has none. */
  readonly informer: Informer<MachineEntry> | undefined;
  /** Checks for Machines periodically, and starts their informer once there are any. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
};

const MACHINES_FORBIDDEN = 'Machines may not be read; native nodes are found by providerID alone';
/** Native nodes may be enabled at any time; nothing waits for it. */
const MACHINES_RETRY_MS = 10 * 60_000;

/** Makes the follower of Machines: their definition exists only in clusters with native nodes. */
export function followMachines(deps: InformerDeps): MachineFollower {
  let informer: Informer<MachineEntry> | undefined;
  return {
    get informer() {
      return informer;
    },
    run: async (signal) => {
      while (!signal.aborted) {
        // If the API server does not answer, there may be some: the informer keeps asking.
        if ((await hasKind(deps, MACHINES, MACHINES_FORBIDDEN, signal)) !== false) {
          informer = openMachines(deps);
          return await informer.start(signal);
        }
        await deps.clock.sleep(MACHINES_RETRY_MS, signal).catch(() => {});
      }
    },
  };
}

/**
 * Reports whether the cluster has objects of a kind that is not ours, and logs `forbidden` where they may not be read.
 * Undefined when the API server does not answer.
 */
async function hasKind(
  { client, log }: InformerDeps,
  type: ResourceType,
  forbidden: string,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  try {
    await client.listPage(type, { limit: 1 }, signal);
    return true;
  } catch (error) {
    if (!isKubeError(error, 'NOT_FOUND', 'FORBIDDEN')) return undefined;
    if (error.code === 'FORBIDDEN') log.warn(forbidden, { error });
    return false;
  }
}

/** Reports whether the cluster has CiliumNodes that may be read; undefined when the API server does not answer. */
export async function haveCiliumNodes(deps: InformerDeps, signal: AbortSignal): Promise<boolean | undefined> {
  return await hasKind(deps, CILIUM_NODES, 'CiliumNodes may not be read; nodes of Cilium get no addresses', signal);
}

/** Opens the informer of CiliumNodes; for the leader only, and only if the cluster has some. */
export function openCiliumNodes(deps: InformerDeps): Informer<CiliumNodeEntry> {
  return open<CiliumNodeEntry>(deps, CILIUM_NODES, { decode: decodeCiliumNode, indexes: CILIUM_NODE_INDEXES });
}
