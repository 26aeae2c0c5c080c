import { setTimeout as sleep } from 'node:timers/promises';
import { CONFIG_MAPS, PODS } from '../../kube/resource-types.ts';
import { isObject } from '../../sim/support/netns.ts';
import { waitUntil } from '../support/wait-until.ts';
import type { ClusterNode } from './cluster-node.ts';
import type { Daemon } from './daemon.ts';
import type { RealCluster } from './real-cluster.ts';

/** Something that happens to clusters: a part dies without a word, stays away for a while, and is started again. */
export type Disturbance = {
  /** `kubelet`, `agent`, `reboot` … */
  readonly kind: string;
  /** What of the cluster is away meanwhile: no two at once happen to the same. */
  readonly target: string;
  /** Does it; resolves when the part has been started again, not when it serves. */
  run(awayMs: number): Promise<void>;
};

/** Kinds of disturbance of one node, of the control plane, and of this project's controller. */
export const NODE_KINDS = ['kubelet', 'containerd', 'kube-proxy', 'agent', 'agent-pod', 'reboot'] as const;
/** @see NODE_KINDS */
export const CLUSTER_KINDS = ['kube-apiserver', 'etcd', 'kube-scheduler', 'kube-controller-manager', 'ipamd'] as const;

/** Makes a disturbance of a node. */
export function disturbNode(cluster: RealCluster, node: ClusterNode, kind: (typeof NODE_KINDS)[number]): Disturbance {
  const { name } = node;
  const run: Record<typeof kind, Disturbance['run']> = {
    kubelet: (awayMs) => killFor(node.kubelet, awayMs),
    containerd: async (awayMs) => {
      await killFor(node.containerd, awayMs);
      await node.awaitRuntime();
    },
    'kube-proxy': (awayMs) => killFor(node.kubeProxy, awayMs),
    agent: () => killProcess(node, 'tke-eni-agent'),
    'agent-pod': () => forceAgentPod(cluster, name),
    reboot: async (awayMs) => {
      await node.powerOff();
      await sleep(awayMs);
      await node.powerOn();
    },
  };
  return { kind, target: name, run: run[kind] };
}

/** Makes a disturbance of the control plane, or of ipamd's leader. */
export function disturbCluster(cluster: RealCluster, kind: (typeof CLUSTER_KINDS)[number]): Disturbance {
  const run: Record<typeof kind, Disturbance['run']> = {
    'kube-apiserver': (awayMs) => killFor(cluster.apiServer, awayMs),
    etcd: (awayMs) => killFor(cluster.etcd, awayMs),
    'kube-scheduler': (awayMs) => killFor(cluster.scheduler, awayMs),
    'kube-controller-manager': (awayMs) => killFor(cluster.controllerManager, awayMs),
    ipamd: async () => killProcess(await nodeOfIpamdLeader(cluster), 'tke-eni-ipamd'),
  };
  const isServer = kind === 'kube-apiserver' || kind === 'etcd';
  return { kind, target: isServer ? 'kube-apiserver' : kind, run: run[kind] };
}

/** Finds the node that ipamd's leader runs on. @throws Error when the lock names no Pod, KubeError */
export async function nodeOfIpamdLeader(cluster: RealCluster): Promise<ClusterNode> {
  const lock = await cluster.admin.get(CONFIG_MAPS, { namespace: 'kube-system', name: 'tke-eni-ipamd-leader' });
  const record: unknown = JSON.parse(String(lock?.metadata.annotations?.['control-plane.alpha.kubernetes.io/leader']));
  const holder = isObject(record) ? String(record['holderIdentity']) : '';
  // A Pod's name and something that tells its containers apart.
  const name = holder.slice(0, holder.lastIndexOf('_'));
  const pod = await cluster.admin.get(PODS, { namespace: 'kube-system', name });
  const spec = pod?.['spec'];
  if (!isObject(spec)) throw new Error(`ipamd's lock is held by ${holder}, which is no Pod`);
  return cluster.node(String(spec['nodeName']));
}

/** Kills a program of ours on a node, without a chance to tidy up; its container is for kubelet to start again. */
export async function killProcess(node: ClusterNode, program: string): Promise<void> {
  // A container that has just died is started soon.
  await waitUntil(
    async () => (await node.tryExec(['sh', '-c', `pid=$(pidof ${program}) && kill -9 $pid`])).code === 0,
    { what: `${node.name}: ${program}`, timeoutMs: 60_000, everyMs: 500, explain: () => node.logs() },
  );
}

async function killFor(daemon: Daemon, awayMs: number): Promise<void> {
  await daemon.kill();
  await sleep(awayMs);
  daemon.start();
}

/** Another Pod comes while kubelet still ends this one. */
async function forceAgentPod(cluster: RealCluster, node: string): Promise<void> {
  const which = ['-l', 'k8s-app=tke-eni-agent', `--field-selector=spec.nodeName=${node}`];
  await cluster.kubectl('-n', 'kube-system', 'delete', 'pod', ...which, '--grace-period=0', '--force', '--wait=false');
}
