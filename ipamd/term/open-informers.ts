import { hasKind } from '../../kube/has-kind.ts';
import { type Informer, type InformerObserver, type InformerOptions, openInformer } from '../../kube/informer.ts';
import type { KubeClient, ResourceType } from '../../kube/kube-client.ts';
import {
  CONFIG_MAPS,
  DEPLOYMENTS,
  MACHINES,
  NODE_ENI_CONFIGS,
  NODES,
  PODS,
  VPC_ENIS,
  VPC_IP_CLAIMS,
  VPC_IPS,
} from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
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
  VIP_INDEXES,
  type VipFacts,
} from '../cache/record-facts.ts';
import { NECS_BY_REGISTERED_IP, readRegisteredIps } from '../cache/registered-ips.ts';
import { decodeVpcEni, VPC_ENI_INDEXES, type VpcEniEntry } from '../cache/vpc-eni-entry.ts';
import type { Term } from '../calls/term.ts';
import type { IpamdConfig } from '../config/options.ts';
import { NECS_BY_CLAIM, NECS_BY_MARKED_IP, readClaimKeys, readMarkedIps } from '../decide/mark-indexes.ts';
import { BY_EXCLUSIVE_ENI, exclusiveEniIdsOf } from '../exclusive/run-vpc-enis.ts';

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

/** Opens what guests read in common, for one term: records of Pods, static addresses, and Deployments. */
export function openTermInformers(deps: InformerDeps, { enableOwnerref }: Pick<IpamdConfig, 'enableOwnerref'>) {
  return {
    vips: open<VipFacts>(deps, VPC_IPS, { decode: decodeVip, indexes: VIP_INDEXES }),
    claims: open<ClaimFacts>(deps, VPC_IP_CLAIMS, {
      decode: decodeClaim,
      indexes: CLAIM_INDEXES,
      bounds: CLAIM_BOUNDS,
    }),
    deployments: enableOwnerref
      ? open<DeploymentFacts>(deps, DEPLOYMENTS, { decode: decodeDeployment, bounds: DEPLOYMENT_BOUNDS })
      : undefined,
  };
}

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
