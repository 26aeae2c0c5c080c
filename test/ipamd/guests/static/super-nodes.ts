import { POD_ANNOTATION } from '../../../../crd/names.ts';
import { NODES, PODS } from '../../../../kube/resource-types.ts';
import { isRecord } from '../../../../runtime/decode.ts';
import type { StaticCluster } from './static-cluster.ts';

/** What a virtual kubelet runs: a Pod with the address of its annotation. */
type VirtualPod = { readonly name: string; readonly ip: string };

/**
 * The stand-in of the virtual kubelet of super nodes. It runs a Pod once the annotation names the Pod's uid, reports the
 * address, and ends a Pod before its object is deleted. It knows nothing but Pods.
 */
export class VirtualKubelet {
  readonly running = new Map<string, VirtualPod>();
  readonly #cluster: StaticCluster;
  readonly #nodes = new Set<string>();

  constructor(cluster: StaticCluster) {
    this.#cluster = cluster;
  }

  async join(name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#nodes.add(name);
    const object = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { 'node.kubernetes.io/instance-type': 'eklet', ...labels } },
      spec: { providerID: 'qcloud:///1/eklet-3jk2x9ab' },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    };
    await this.#cluster.run(this.#cluster.scene.kube.create(NODES, object));
  }

  /** Deletes a Pod: what runs of it ends before. */
  async deletePod(name: string): Promise<void> {
    for (const [uid, pod] of this.running) if (pod.name === name) this.running.delete(uid);
    await this.#cluster.deletePod(name);
  }

  /** One turn: each Pod of its nodes whose annotation is for it runs from now on. */
  async turn(): Promise<void> {
    for (const object of this.#cluster.scene.server.objects('pods')) {
      const { name, uid, annotations } = object.metadata as Readonly<Record<string, unknown>>;
      const spec = object['spec'];
      const node = isRecord(spec) ? String(spec['nodeName'] ?? '') : '';
      if (!this.#nodes.has(node) || this.running.has(String(uid))) continue;
      const text = isRecord(annotations) ? annotations[POD_ANNOTATION.vpcIpAllocation] : undefined;
      const allocation: unknown = typeof text === 'string' ? JSON.parse(text) : undefined;
      if (!isRecord(allocation) || allocation['uid'] !== uid) continue;
      const ip = String(allocation['ip']);
      this.running.set(String(uid), { name: String(name), ip });
      const body = { status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] } };
      const ref = { namespace: 'default', name: String(name) };
      const patch = { kind: 'merge', body, subresource: 'status' } as const;
      await this.#cluster.run(this.#cluster.scene.kube.patch(PODS, ref, patch)).catch(() => {});
    }
  }

  /** One step of the cluster, and a turn. @throws Error when the present state breaks a rule */
  async step(): Promise<void> {
    await this.#cluster.step();
    await this.turn();
    const faults = this.faults();
    if (faults.length > 0) throw new Error(faults.join('; '));
  }

  async until(holds: () => boolean, what: () => string, limitMs = 900_000): Promise<void> {
    if (!(await this.#cluster.scene.clock.until(holds, limitMs, () => this.step()))) throw new Error(what());
  }

  async pass(ms: number): Promise<void> {
    const { clock } = this.#cluster.scene;
    const untilMs = clock.monotonicMs() + ms;
    while (clock.monotonicMs() < untilMs) await this.step();
  }

  ipOf(uid: string): string | undefined {
    return this.running.get(uid)?.ip;
  }

  /** What is wrong at this moment, whatever happened before. */
  faults(): readonly string[] {
    const { state } = this.#cluster.scene.host.model;
    const reservations = [...state.reservedIps.reservations.values()];
    const names = reservations.map(({ name }) => name);
    const twice = names.filter((name, index) => names.indexOf(name) !== index);
    const ips = [...this.running.values(), ...this.#cluster.sandboxes.values()].map(({ ip }) => ip);
    return [
      ...twice.map((name) => `two addresses are reserved for ${name}`),
      ...ips.filter((ip, index) => ips.indexOf(ip) !== index).map((ip) => `two Pods have ${ip}`),
      ...[...this.running.values()].flatMap(({ name, ip }) => {
        if (reservations.every((one) => one.ip !== ip)) return [`${name} runs with ${ip}, which is not reserved`];
        const holder = state.holderOf(ip);
        return holder === undefined ? [] : [`${name} runs with ${ip}, which ENI ${holder} has`];
      }),
    ];
  }
}
