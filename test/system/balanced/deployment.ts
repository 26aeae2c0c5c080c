import { BACKEND_READY_GATE, ENI_IP_RESOURCE, POD_ANNOTATION } from '../../../crd/names.ts';
import { PODS } from '../../../kube/resource-types.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { POD_NAMESPACE } from '../cluster.ts';
import type { SystemNode } from '../system-node.ts';
import type { BalancedSystem } from './balanced-system.ts';
import type { AtEnd, WebPod } from './web-pod.ts';

/** How a Pod ends. */
export type Ending = {
  /** Milliseconds between the deletion, or the weight 0 in the cloud, and SIGTERM: a preStop sleep. */
  readonly preStopMs: number;
  /** A machine may be too busy for a sleep from the deletion on. */
  readonly isAfterDrain?: boolean;
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly graceMs: number;
};

type Replica = { readonly node: SystemNode; readonly web: WebPod; readonly atEnd: AtEnd };

/** A Deployment of servers of pages with the readiness gate of load balancers, spread over nodes. */
export class Deployment {
  readonly app: string;
  readonly #cluster: BalancedSystem;
  readonly #nodes: readonly SystemNode[];
  #replicas: Replica[] = [];
  #serial = 0;

  constructor(cluster: BalancedSystem, nodes: readonly SystemNode[], app: string) {
    this.#cluster = cluster;
    this.#nodes = nodes;
    this.app = app;
  }

  /** Starts so many Pods more; their servers do so at SIGTERM. */
  async start(count: number, atEnd: AtEnd): Promise<readonly string[]> {
    const names: string[] = [];
    for (let index = 0; index < count; index++) {
      const node = this.#nodes[this.#serial % this.#nodes.length];
      if (node === undefined) throw new Error('no nodes');
      names.push(await this.#startOn(node, atEnd));
    }
    return names;
  }

  /** Waits until Pods are Ready: their servers are, and load balancers have them. */
  async awaitReady(names: readonly string[]): Promise<void> {
    const waiting = async (): Promise<readonly string[]> => {
      const pods = await Promise.all(names.map((name) => this.#cluster.system.cluster.admin.get(PODS, refOf(name))));
      return pods.flatMap((pod, at) =>
        isReady(pod?.['status']) ? [] : [`${names[at]} ${JSON.stringify(pod?.['status'])}`],
      );
    };
    await waitUntil(async () => (await waiting()).length === 0, {
      what: `${names.join(', ')} to be Ready`,
      timeoutMs: 120_000,
      everyMs: 200,
      explain: () => `${this.#cluster.targets().join('\n')}\n${this.#cluster.logs()}`,
    });
  }

  /**
   * Replaces Pods whose servers do so at SIGTERM by others, as a Deployment with maxUnavailable 0 does: new ones are started, and once they are Ready the old
   * ones are deleted. Resolves when the old ones are gone.
   */
  async replace(count: number, atEnd: AtEnd, ending: Ending): Promise<void> {
    const old = this.#replicas.filter((replica) => replica.atEnd === atEnd).slice(0, count);
    await this.awaitReady(await this.start(count, atEnd));
    this.#replicas = this.#replicas.filter((replica) => !old.includes(replica));
    await Promise.all(old.map((replica) => this.#end(replica, ending)));
  }

  async #startOn(node: SystemNode, atEnd: AtEnd): Promise<string> {
    const name = `${this.app}-${this.#serial++}`;
    const marks = {
      labels: { app: this.app },
      annotations: { [POD_ANNOTATION.networks]: 'tke-route-eni' },
      resources: [ENI_IP_RESOURCE],
      readinessGates: [BACKEND_READY_GATE],
    };
    const web = await this.#cluster.serve(await node.runPod(name, { marks }), atEnd);
    this.#replicas.push({ node, web, atEnd });
    return name;
  }

  /** What the kubelet does with a Pod that is deleted. */
  async #end({ node, web }: Replica, { preStopMs, graceMs, isAfterDrain }: Ending): Promise<void> {
    const { name, ip } = web.pod;
    await this.#cluster.system.cluster.askRemoval(name);
    if (isAfterDrain === true) {
      const its = () => this.#cluster.targets().filter((target) => target.includes(` ${ip}:`));
      const isDrained = () => its().every((target) => target.endsWith(' 0'));
      await waitUntil(isDrained, {
        what: `weight 0 of ${name}`,
        timeoutMs: 60_000,
        explain: () => this.#cluster.logs(),
      });
    }
    await systemClock.sleep(preStopMs);
    web.server.kill('SIGTERM');
    const limit = AbortSignal.timeout(graceMs);
    const killed = new Promise<void>((resolve) => limit.addEventListener('abort', () => resolve(), { once: true }));
    await Promise.race([web.server.exited, killed]);
    await web.server.stop('SIGKILL');
    await node.removePod(name);
  }
}

function refOf(name: string) {
  return { namespace: POD_NAMESPACE, name };
}

function isReady(status: unknown): boolean {
  const { conditions = [] } = (status ?? {}) as {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
  return conditions.some((one) => one.type === 'Ready' && one.status === 'True');
}
