import { SimulatedAgent } from '../../bench/ipamd/simulated-agent.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import type { InProcessApi } from '../../sim/kube-api/in-process.ts';
import type { MachineClock, Timeline } from './clock.ts';
import { type AddressGiver, Kubelet } from './standins/kubelet.ts';
import type { Streams } from './streams.ts';
import type { WholeAgent } from './whole-agent.ts';

/** What a node is to be; each may be absent. */
export type NodeOptions = {
  /** Of its instance: how many ENIs and addresses it may have follows; default 2. */
  readonly cores?: number;
  readonly extendEnis?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly podCIDR?: string;
  /** What the Node says its machine is; default the truth. */
  readonly providerID?: string;
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

/** What others see of an agent. */
type NodeAgent = {
  /** Addresses that are in use, and on which ENI. */
  readonly addresses: readonly string[];
  addressesOn(eniId: string): readonly string[];
};

/** A machine of the cluster, with its kubelet, and its agent or a stand-in for that. */
export class Machine {
  readonly name: string;
  readonly instanceId: string;
  readonly agent: NodeAgent;
  /** The real agent, where one runs. */
  readonly whole: WholeAgent | undefined;
  readonly kubelet: Kubelet;
  readonly #end = new AbortController();
  #simulated: SimulatedAgent | undefined;
  #isOff = false;

  /**
   * @param serial counts the machines of a world from 1
   * @param openAgent opens the real agent of a machine; `onAddress` is told of each Pod that has its network
   */
  constructor(world: Surroundings, serial: number, openAgent: OpenAgent | undefined) {
    const name = `node-${String(serial).padStart(2, '0')}`;
    this.name = name;
    this.instanceId = `ins-${String(serial).padStart(8, '0')}`;
    this.whole = openAgent?.(this, (uid, ips, netns) => this.kubelet.attached(uid, ips, netns));
    const { agent, giver } =
      this.whole === undefined ? this.#simulate(world) : { agent: this.whole, giver: this.whole.runtime };
    this.agent = agent;
    this.kubelet = new Kubelet({
      node: name,
      agent: giver,
      api: world.api,
      kube: world.api.client({ userAgent: `kubelet-${name}` }),
      time: world.time,
      draw: world.streams.of(`kubelet ${name}`),
      note: (what) => world.note(`kubelet-${name}`, what),
    });
  }

  /** Whether it is gone; then nothing on it uses an address. */
  get isOff(): boolean {
    return this.#isOff;
  }

  /** The object of the node changed. */
  observe(object: KubeObject): void {
    if (!this.#isOff) this.#simulated?.observe(object);
  }

  /** It is gone for good, with all that ran on it. */
  turnOff(): void {
    this.#isOff = true;
    this.#end.abort(new Error('the machine is off'));
    this.kubelet.turnOff();
    this.whole?.turnOff();
  }

  /** Addresses in use on an ENI. */
  usedOn(eniId: string): readonly string[] {
    return this.#isOff ? [] : this.agent.addressesOn(eniId);
  }

  #simulate(world: Surroundings): { readonly agent: NodeAgent; readonly giver: AddressGiver } {
    const { name } = this;
    const kube = world.api.client({ userAgent: `agent-${name}` });
    const agent = new SimulatedAgent({
      nodeName: name,
      kube,
      clock: world.machineClock(name),
      cooldownMs: world.cooldownMs,
      isQuick: false,
      onAddress: (uid, ips) => this.kubelet.attached(uid, ips),
    });
    this.#simulated = agent;
    void agent.run(this.#end.signal);
    const giver: AddressGiver = {
      add: (pod, isKept) => agent.add(pod.uid, isKept ? pod : undefined),
      remove: (uid) => agent.remove(uid),
    };
    return { agent, giver };
  }
}

/** Opens the real agent of a machine. */
export type OpenAgent = (
  machine: { readonly name: string; readonly instanceId: string },
  onAddress: (uid: string, ips: readonly string[], netns: string) => void,
) => WholeAgent;
