import type { CriSandbox, SandboxView } from '../../agent/cri/sandbox-view.ts';
import type { HostPorts, Served } from '../../agent/host-ports.ts';
import type { NodeRecord } from '../../agent/journal/node-record.ts';
import type { FoundState, FoundStateRecorder } from '../../agent/node/found-state.ts';
import type { Namespaces } from '../../agent/node/namespaces.ts';
import { NO_RESERVATIONS } from '../../agent/pod-cidr/host-local-files.ts';
import { openOwnWrites } from '../../agent/repair/own-writes.ts';
import type { Conntrack } from '../../agent/state/ports.ts';
import { NftError } from '../../dataplane/nft-error.ts';
import type { NetnsRef } from '../../netlink/link-message.ts';
import { NetnsError } from '../../netlink/netns.ts';
import type { Clock } from '../../runtime/clock.ts';
import { ModelMachine } from '../../sim/kernel/machine.ts';
import { JournalPlace } from './memory-journal.ts';

/** What one life of an agent gives to its machine. */
type AgentLife = {
  readonly clock: Clock;
  readonly nodeName: string;
  /** Called with what it serves, once it does. */
  readonly serving: (served: Served) => void;
  /** Called whenever it says whether it is ready. */
  readonly ready?: (isReady: boolean) => void;
};

/** How long notifications are gathered, as on a real machine. */
const GATHER_MS = 10;
const NETNS_FOLDER = '/run/netns/';

/** A machine in memory: its kernel, its tmpfs, the sandboxes of its runtime. It outlives agents; each gets it by `ports`. */
export class NodeHost {
  readonly journal = new JournalPlace();
  /** Sandboxes that the runtime lists, by id, with the names of their namespaces. */
  readonly sandboxes = new Map<string, CriSandbox & { readonly netns: string }>();
  /** Those of them that the runtime does not list: their ADD is not over. */
  readonly unlisted = new Set<string>();
  /** Whether the runtime lists nothing, as another one does, or one that has lost its state. */
  listsNothing = false;
  readonly #clock: Clock;
  readonly #names = new Set<string>();
  #bootId: string;
  #kernel: ModelMachine;
  #record: NodeRecord | undefined;

  constructor(clock: Clock, bootId: string) {
    this.#clock = clock;
    this.#bootId = bootId;
    this.#kernel = makeKernel(clock);
  }

  get kernel(): ModelMachine {
    return this.#kernel;
  }

  /** The node as its agent planned it last since it booted. */
  get record(): NodeRecord | undefined {
    return this.#record;
  }

  /** It boots: another kernel, an empty tmpfs, no sandbox. Who ran on it is dead. */
  reboot(bootId: string): void {
    this.#bootId = bootId;
    this.#kernel = makeKernel(this.#clock);
    this.#record = undefined;
    this.journal.lose();
    this.journal.isFull = false;
    for (const all of [this.#names, this.sandboxes, this.unlisted]) all.clear();
  }

  /** Makes a sandbox with a namespace of its own, and returns the path of that. */
  startSandbox(sandbox: CriSandbox): string {
    const name = `cni-${sandbox.id}`;
    this.kernel.createNetns(name).close();
    this.#names.add(name);
    this.sandboxes.set(sandbox.id, { ...sandbox, netns: NETNS_FOLDER + name });
    return NETNS_FOLDER + name;
  }

  /** Ends a sandbox: its namespace goes, and all in it. */
  endSandbox(id: string): void {
    const { netns = '' } = this.sandboxes.get(id) ?? {};
    const name = netns.slice(NETNS_FOLDER.length);
    this.#names.delete(name);
    this.kernel.deleteNetns(name);
    this.sandboxes.delete(id);
  }

  /** Opens the machine for one life of an agent. What lived before has its journal no more. */
  ports({ clock, nodeName, serving, ready = () => {} }: AgentLife): HostPorts {
    const { kernel, journal } = this;
    const { host } = kernel;
    const namespaces = this.#namespaces();
    journal.release();
    return {
      bootId: this.#bootId,
      refuseOthers: async () => {},
      openJournal: () => journal.open(this.#bootId, clock),
      openKernel: () => {
        const rtnetlink = kernel.openRtnetlink(host);
        const ownWrites = openOwnWrites(rtnetlink);
        const [sysctl, nft] = [kernel.openSysctl(host), kernel.openNft(host, ownWrites.noteProcess)];
        return { kernel: { rtnetlink, sysctl, nft, enter: namespaces.enter }, ownWrites };
      },
      openPrograms: () => ({ problem: 'a kernel in memory runs no programs' }),
      openMonitor: (groups) => kernel.openMonitor(host, { groups, gatherMs: GATHER_MS }),
      namespaces,
      conntrack: NO_CONNTRACK,
      view: this.#view(),
      kubelet: undefined,
      reservations: NO_RESERVATIONS,
      openFoundState: () => foundStateOf(this.#bootId),
      findNodeRecord: () => this.#record,
      planned: (node, enis) => {
        this.#record = { bootId: this.#bootId, agentRelease: 'simulation', nodeName, node, enis };
      },
      readNetworkConfs: () => [],
      readServers: () => new Map(),
      readMasqChains: async () => [],
      openSupply: () => {
        throw new Error('a simulated node has no file of supply');
      },
      watchSpool: () => ({ drain: async () => {}, close: () => {} }),
      serve: async (served) => {
        serving(served);
        return { health: { setServing: ready }, ensureSocket: async () => false, drain: async () => {} };
      },
      serveHttp: async () => undefined,
      openInstallation: () => NOTHING_INSTALLED,
      removeConflist: () => {},
      openExplainer: () => ({ explain: async () => ({ declined: 'nothing is explained in a simulation' }) }),
      readPendingInput: async () => {},
      afterTurn: queueMicrotask,
      releaseMemory: () => {},
      collectProcessMetrics: () => {},
    };
  }

  #namespaces(): Namespaces {
    const { host } = this.kernel;
    return {
      // It is never closed.
      own: () => ({ fd: host.fd, path: host.path, close: () => {}, [Symbol.dispose]: () => {} }),
      named: () => [...this.#names].map((name) => NETNS_FOLDER + name),
      open: (path) => {
        const name = path.slice(NETNS_FOLDER.length);
        if (!path.startsWith(NETNS_FOLDER) || !this.#names.has(name)) {
          throw new NetnsError('ENOENT', path, 'does not exist');
        }
        return this.kernel.openNetns(name);
      },
      identityOf: ({ path }) => path,
      enter: (netns: NetnsRef) => this.kernel.enter(netns),
    };
  }

  #view(): SandboxView {
    return {
      list: async () =>
        [...this.sandboxes.values()]
          .filter(({ id }) => !this.listsNothing && !this.unlisted.has(id))
          .map(({ netns: _netns, ...sandbox }) => sandbox),
      network: async (id) => {
        const sandbox = this.sandboxes.get(id);
        return sandbox && { ips: [], netns: sandbox.netns };
      },
      close: () => {},
    };
  }
}

function makeKernel(clock: Clock): ModelMachine {
  return new ModelMachine({ clock, nftRefused: (text) => new NftError('NFT_REFUSED', 'load nftables', text) });
}

/** No flow is followed. */
const NO_CONNTRACK: Conntrack = { flush: async () => {}, flushOrThrow: async () => {} };

const NOTHING_INSTALLED = {
  ensureExecutables: async () => {},
  ensureConflist: async () => {},
  follow: async () => {},
  kick: () => {},
  warmExecutable: async () => {},
};

/** Nothing is restored: no agent is uninstalled. */
function foundStateOf(bootId: string): FoundStateRecorder {
  const current: FoundState = { bootId, sysctls: [], links: [] };
  return { current: () => current, record: () => {}, restore: () => {}, forget: () => {} };
}
