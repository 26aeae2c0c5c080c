import { CONTAINERD_METRICS } from '../../test/cluster/cluster-node.ts';
import type { RealCluster } from '../../test/cluster/real-cluster.ts';
import { sumSamples } from './prometheus-text.ts';

/** What a node's kubelet and containerd have counted since they started; seconds and numbers. */
type SandboxTotals = {
  readonly run: Total;
  readonly stop: Total;
  readonly setup: Total;
  readonly teardown: Total;
};

/** Means of the calls between two readings, milliseconds. */
export type Latencies = {
  /** RunPodSandbox, as the kubelet sees it. */
  readonly runMs: number;
  /** StopPodSandbox, as the kubelet sees it. */
  readonly stopMs: number;
  /** ADD of the whole plugin chain, as containerd sees it. */
  readonly setupMs: number;
  /** DEL of the whole plugin chain, as containerd sees it. */
  readonly teardownMs: number;
};

type Total = { readonly sum: number; readonly count: number };

const KUBELET_OPERATIONS = 'kubelet_runtime_operations_duration_seconds';
/** containerd says seconds twice. */
const NETWORK_OPERATIONS = 'containerd_cri_network_plugin_operations_duration_seconds_seconds';

/** Reads what a node's kubelet and containerd have counted. */
export async function sandboxTotals(cluster: RealCluster, node: string): Promise<SandboxTotals> {
  const [kubelet, containerd] = await Promise.all([
    cluster.kubectl('get', '--raw', `/api/v1/nodes/${node}/proxy/metrics`),
    cluster.node(node).exec(['busybox', 'wget', '-q', '-O', '-', `http://${CONTAINERD_METRICS}/v1/metrics`]),
  ]);
  const ofKubelet = (operation: string) => totalOf(kubelet, KUBELET_OPERATIONS, { operation_type: operation });
  const ofNetwork = (operation: string) => totalOf(containerd, NETWORK_OPERATIONS, { operation_type: operation });
  return {
    run: ofKubelet('run_podsandbox'),
    stop: ofKubelet('stop_podsandbox'),
    setup: ofNetwork('set_up_pod'),
    teardown: ofNetwork('tear_down_pod'),
  };
}

/** Computes the means of going up (between the first two readings) and of going down (between the last two). */
export function readLatencies(before: SandboxTotals, between: SandboxTotals, after: SandboxTotals): Latencies {
  return {
    runMs: meanMs(before.run, between.run),
    stopMs: meanMs(between.stop, after.stop),
    setupMs: meanMs(before.setup, between.setup),
    teardownMs: meanMs(between.teardown, after.teardown),
  };
}

function totalOf(text: string, histogram: string, labels: Readonly<Record<string, string>>): Total {
  return { sum: sumSamples(text, `${histogram}_sum`, labels), count: sumSamples(text, `${histogram}_count`, labels) };
}

function meanMs(from: Total, to: Total): number {
  return ((to.sum - from.sum) / (to.count - from.count)) * 1000;
}
