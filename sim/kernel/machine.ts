import type { InNetns, NodeKernel } from '../../dataplane/kernel.ts';
import { NetnsError, type OpenNetns } from '../../netlink/netns.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Sysctl } from '../../sysctl/sysctl.ts';
import { makeLoopback, plugIn, removeLink, returnToHost } from './links.ts';
import { type ModelMonitor, type ModelMonitorOptions, openModelMonitor } from './monitor.ts';
import { linksOf, type MachineState, type Netns } from './netns.ts';
import { openModelRtnetlink } from './rtnetlink.ts';
import { makeRules } from './rules.ts';
import { makeConf, makeSettings, openModelSysctl } from './settings.ts';
import { openModelNft } from './tables.ts';

/** What a machine needs from its world. */
type MachineOptions = {
  readonly clock: Clock;
  /** Makes the error of a run of nft that is refused: the product tells them by their class. */
  readonly nftRefused: (stderr: string) => Error;
};

/** Descriptors of the model are no descriptors of this process: a real call with one fails. */
const FIRST_FD = 1_000_000;
/** Ports of sockets, as the kernel chooses them where the process has its own already. */
const FIRST_PORT = 0x8000_0001;
const FIRST_PID = 1000;

/** The kernel of one machine in memory: its namespaces and what leads from one to another. */
export class ModelMachine {
  readonly #byName = new Map<string, Netns>();
  readonly #byFd = new Map<number, Netns>();
  readonly #options: MachineOptions;
  readonly #state: MachineState;
  readonly #host: Netns;
  /** The host's namespace. */
  readonly host: OpenNetns;
  #nextFd = FIRST_FD;
  #nextPort = FIRST_PORT;
  #nextPid = FIRST_PID;
  #macs = 0;

  constructor(options: MachineOptions) {
    this.#options = options;
    const { clock } = options;
    this.#state = {
      clock,
      later: (ms, run) => {
        void clock.sleep(ms).then(run);
      },
      host: () => this.#host,
      byFd: (fd) => this.#byFd.get(fd),
      nextMac: () => macOf(++this.#macs),
      nextPid: () => this.#nextPid++,
    };
    this.#host = this.#make('host');
    this.host = this.openNetns('host');
  }

  /** Makes a namespace with its loopback down, and opens it. @throws NetnsError 'EEXIST' */
  createNetns(name: string): OpenNetns {
    if (this.#byName.has(name)) throw new NetnsError('EEXIST', pathOf(name), 'exists already');
    this.#make(name);
    return this.openNetns(name);
  }

  /** Opens a namespace; its descriptor means something to this machine alone. @throws NetnsError 'ENOENT' */
  openNetns(name: string): OpenNetns {
    const netns = this.#byName.get(name);
    if (netns === undefined) throw new NetnsError('ENOENT', pathOf(name), 'does not exist');
    const fd = this.#nextFd++;
    this.#byFd.set(fd, netns);
    const close = (): void => {
      this.#byFd.delete(fd);
      this.#endUnused(netns);
    };
    return { fd, path: pathOf(name), close, [Symbol.dispose]: close };
  }

  /** Removes the name of a namespace, which ends with the last that has it open. Idempotent. */
  deleteNetns(name: string): void {
    const netns = this.#byName.get(name);
    this.#byName.delete(name);
    if (netns !== undefined) this.#endUnused(netns);
  }

  /** The state of a namespace by its name, for who judges it; undefined when there is none. */
  namespace(name: string): Netns | undefined {
    return this.#byName.get(name);
  }

  /** Opens the requests of a namespace. @throws NetnsError 'EBADF' */
  openRtnetlink(netns: { readonly fd: number }): Rtnetlink {
    return openModelRtnetlink(this.#of(netns), this.#nextPort++);
  }

  /** Opens the settings of a namespace. */
  openSysctl(netns: { readonly fd: number }): Sysctl {
    return openModelSysctl(this.#of(netns));
  }

  /** Opens a namespace, as a Pod's is entered. No program of the model has packet sockets. */
  enter(netns: { readonly fd: number }): InNetns {
    const rtnetlink = this.openRtnetlink(netns);
    return {
      ...{ rtnetlink, sysctl: this.openSysctl(netns), packetLinks: () => [] },
      [Symbol.dispose]: () => rtnetlink.close(),
    };
  }

  /** Watches a namespace. */
  openMonitor(netns: { readonly fd: number }, options: ModelMonitorOptions): ModelMonitor {
    return openModelMonitor(this.#of(netns), options);
  }

  /** Opens nftables of a namespace. @param loading called with the id of each process that will change it */
  openNft(netns: { readonly fd: number }, loading?: (pid: number) => void): NodeKernel['nft'] {
    const { nftRefused: refused } = this.#options;
    return openModelNft(this.#of(netns), { refused, ...(loading && { loading }) });
  }

  /** Plugs a device of the machine in, as an ENI is, and returns its ifindex. */
  plugIn(netns: { readonly fd: number }, device: { readonly ifname: string; readonly address: string }): number {
    return plugIn(this.#of(netns), device);
  }

  /** Unplugs a device of the machine, wherever it is. */
  unplug(netns: { readonly fd: number }, ifindex: number): void {
    const link = this.#of(netns).links.get(ifindex);
    if (link !== undefined) removeLink(link, 0);
  }

  #of({ fd }: { readonly fd: number }): Netns {
    const netns = this.#byFd.get(fd);
    if (netns === undefined) throw new NetnsError('EBADF', `descriptor ${fd}`, 'cannot be entered');
    return netns;
  }

  #make(name: string): Netns {
    const netns: Netns = {
      ...{ name, machine: this.#state, links: new Map(), tables: { 4: new Map(), 6: new Map() } },
      ...{ rules: { 4: [], 6: [] }, all: makeConf('all'), default: makeConf('default'), settings: makeSettings() },
      ...{ nft: new Map(), nftGeneration: 1, listeners: new Set(), ids: new Map(), nextIndex: 1, isGone: false },
    };
    makeLoopback(netns);
    makeRules(netns);
    this.#byName.set(name, netns);
    return netns;
  }

  /** Pairs end with it; devices of the machine go back to the host. */
  #endUnused(netns: Netns): void {
    if (netns.isGone || this.#byName.get(netns.name) === netns || [...this.#byFd.values()].includes(netns)) return;
    netns.isGone = true;
    netns.listeners.clear();
    for (const link of linksOf(netns)) {
      if (!netns.links.has(link.ifindex)) continue;
      if (link.isHardware) returnToHost(link);
      else removeLink(link, 0);
    }
  }
}

function pathOf(name: string): string {
  return `/run/netns/${name}`;
}

function macOf(count: number): string {
  const bytes = [2, 0, (count >> 24) & 255, (count >> 16) & 255, (count >> 8) & 255, count & 255];
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(':');
}
