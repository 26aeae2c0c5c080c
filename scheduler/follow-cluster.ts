import { RECORD_LABEL } from '../crd/names.ts';
import { SUBNETS_CONFIG_MAP, type SubnetSupply } from '../crd/subnet-supply.ts';
import { type Informer, type InformerObserver, type InformerOptions, openInformer } from '../kube/informer.ts';
import type { KubeClient } from '../kube/kube-client.ts';
import type { ObjectChange } from '../kube/object-cache.ts';
import { CONFIG_MAPS, NODE_ENI_CONFIGS, NODES, PODS, VPC_IP_CLAIMS, VPC_IPS } from '../kube/resource-types.ts';
import type { ChangeSignal } from '../runtime/change-signal.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';
import { StampAges } from '../runtime/stamp-ages.ts';
import {
  type ClaimFacts,
  type NecFacts,
  type NodeTraits,
  readClaim,
  readNec,
  readNode,
  readSubnets,
  readVip,
  type VipFacts,
} from './index/facts.ts';
import { type PodRequest, readPodRequest, type SharedTexts } from './index/pod-request.ts';
import type { SchedulerIndex } from './index/scheduler-index.ts';

/** The informers of the scheduler extender, by resource. */
export type Followed = {
  readonly nodes: Informer<NodeTraits>;
  readonly nodeeniconfigs: Informer<NecFacts>;
  readonly vpcipclaims: Informer<ClaimFacts>;
  readonly vpcips: Informer<VipFacts>;
  readonly pods: Informer<PodRequest>;
  /** Watches only the ConfigMap in which ipamd publishes the free addresses of subnets. */
  readonly configmaps: Informer<ReadonlyMap<string, SubnetSupply>>;
};

/** What the informers need. */
type FollowDeps = {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly observer?: InformerObserver;
  /** Namespace of ipamd, where it publishes the ConfigMap of subnets. */
  readonly namespace: string;
};

/** Objects on a page: of 100,000 Pods each page is garbage, and one of a few hundred kilobytes is reused sooner than one of megabytes. */
const PAGE_SIZE = 200;

/** Opens informers that update the index and notify waiting requests. They read nothing until they are started. */
export function followCluster(deps: FollowDeps, index: SchedulerIndex, changes: ChangeSignal): Followed {
  const open = <T>(specifics: Pick<InformerOptions<T>, 'type' | 'decode' | 'query'>): Informer<T> =>
    openInformer<T>({ ...deps, pageSize: PAGE_SIZE, ...specifics });
  const sharedWith = (key: string): SharedTexts => ({ key, nodeNameOf: (name) => index.node(name)?.name ?? name });
  const withoutRecords = { query: { labelSelector: `!${RECORD_LABEL.key}` } };
  const subnetsQuery = { namespace: deps.namespace, fieldSelector: `metadata.name=${SUBNETS_CONFIG_MAP}` };
  const followed: Followed = {
    nodes: open({ type: NODES, decode: readNode }),
    nodeeniconfigs: open({ type: NODE_ENI_CONFIGS, decode: readNec }),
    vpcipclaims: open({
      type: VPC_IP_CLAIMS,
      decode: (object, key) => readClaim(object, sharedWith(key)),
      ...withoutRecords,
    }),
    vpcips: open({ type: VPC_IPS, decode: readVip, ...withoutRecords }),
    pods: open({ type: PODS, decode: (object, key) => readPodRequest(object, sharedWith(key)) }),
    configmaps: open({ type: CONFIG_MAPS, decode: readSubnets, query: subnetsQuery }),
  };
  const ages = new StampAges(deps.clock);
  followed.nodes.subscribe(({ key, after }) => index.setNode(key, after));
  followed.nodeeniconfigs.subscribe(({ key, after }) => index.setNec(key, after));
  followed.vpcipclaims.subscribe(({ key, after }) => {
    const ageMs = ages.ageMs(key, after?.reserved?.since);
    index.setClaim(key, after, { ageMs, monotonicMs: deps.clock.monotonicMs() });
  });
  followed.vpcips.subscribe(({ before, after }) => {
    if (before !== undefined && before.ip !== after?.ip) index.setVip(before.ip, undefined);
    if (after !== undefined) index.setVip(after.ip, after);
  });
  followed.pods.subscribe((change) => updatePod(index, change));
  followed.configmaps.subscribe(({ after }) => index.setSubnets(after));
  for (const informer of Object.values(followed)) informer.subscribe(() => changes.notify());
  return followed;
}

/** Updates one Pod in the index. A Pod of the same name may have another uid: then the one before is deleted. */
function updatePod(index: SchedulerIndex, { before, after }: ObjectChange<PodRequest>): void {
  if (before !== undefined && before.uid !== after?.uid) index.setPod(before.uid, undefined);
  if (after !== undefined) index.setPod(after.uid, after);
}
