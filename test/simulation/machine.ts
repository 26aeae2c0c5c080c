import { SimulatedAgent } from '../../bench/ipamd/simulated-agent.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { InProcessApi } from '../../sim/kube-api/in-process.ts';
import type { MachineClock, Timeline } from './clock.ts';
import { Kubelet } from './standins/kubelet.ts';
import type { Streams } from './streams.ts';

/** What a node is to be; each may be absent. */
export type NodeOptions = {
  /** Of its instance: how many ENIs and addresses it may have follows; default 2. */
  readonly cores?: number;
  readonly extendEnis?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly podCIDR?: string;
  /** Of the cloud; default `subnet-nodes000`. */
  readonly subnetId?: string;
};

/** Where a machine is. */
type Surroundings = {
  readonly api: InProcessApi;
  readonly time: Timeline;
  readonly streams: Streams;
  readonly cooldownMs: number;
  machineClock(name: string): MachineClock;
  note(who: string, what: string): void;
};

/** A machine of the cluster, with a stand-in for its agent and its kubelet. */
export class Machine {
  readonly name: string;
  readonly instanceId: string;
  readonly agent: SimulatedAgent;
  readonly kubelet: Kubelet;
  readonly #end = new AbortController();
  #isOff = false;

  /** @param serial counts the machines of a world from 1 */
  constructor(world: Surroundings, serial: number) {
    const name = `node-${String(serial).padStart(2, '0')}`;
    this.name = name;
    this.instanceId = `ins-${String(serial).padStart(8, '0')}`;
    const kube = world.api.client({ userAgent: `agent-${name}` });
    this.agent = new SimulatedAgent({
      nodeName: name,
      kube,
      clock: world.machineClock(name),
      cooldownMs: world.cooldownMs,
      isQuick: false,
      onAddress: (uid, ips) => this.kubelet.attached(uid, ips),
    });
    this.kubelet = new Kubelet({
      node: name,
      agent: this.agent,
      api: world.api,
      kube: world.api.client({ userAgent: `kubelet-${name}` }),
      time: world.time,
      draw: world.streams.of(`kubelet ${name}`),
      note: (what) => world.note(`kubelet-${name}`, what),
    });
    void this.agent.run(this.#end.signal);
  }

  /** Whether it is gone; then nothing on it uses an address. */
  get isOff(): boolean {
    return this.#isOff;
  }

  /** The object of the node changed. */
  observe(object: KubeObject): void {
    if (!this.#isOff) this.agent.observe(object);
  }

  /** It is gone for good, with all that ran on it. */
  turnOff(): void {
    this.#isOff = true;
    this.#end.abort(new Error('the machine is off'));
    this.kubelet.turnOff();
  }

  /** Addresses in use on an ENI. */
  usedOn(eniId: string): readonly string[] {
    return this.#isOff ? [] : this.agent.addressesOn(eniId);
  }
}
