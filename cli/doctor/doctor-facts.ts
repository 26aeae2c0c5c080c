import type { Finding } from '../finding.ts';
import type { Known, NodeFacts } from '../node/node-facts.ts';
import type { ConfFile } from './read-conf-files.ts';

/** systemd-networkd and udev's link files. */
export type NetworkdFacts = {
  /** False where the host has another init, or its files are not where we look. */
  readonly hasSystemd: boolean;
  readonly isActive: boolean;
  /** Of systemd; undefined when it cannot be told. */
  readonly version: number | undefined;
  /** networkd.conf and its drop-ins, in the order in which they count. */
  readonly conf: readonly ConfFile[];
  /** .network files; the first that matches a link configures it. */
  readonly networks: readonly ConfFile[];
  /** .link files; the first that matches a link counts. */
  readonly links: readonly ConfFile[];
  /** Drivers of the NICs, by interface name. */
  readonly drivers: ReadonlyMap<string, string>;
};

/** NetworkManager. */
export type NetworkManagerFacts = {
  /** As of NetworkdFacts. */
  readonly hasSystemd: boolean;
  readonly isActive: boolean;
  /** In the order in which they count. */
  readonly conf: readonly ConfFile[];
  /** What it says of each device now, by ifindex. */
  readonly devices: ReadonlyMap<number, string>;
};

/** cloud-init. */
export type CloudInitFacts = {
  readonly isInstalled: boolean;
  readonly isDisabled: boolean;
  /** cloud.cfg and cloud.cfg.d, in the order in which they count. */
  readonly conf: readonly ConfFile[];
  /** udev's rule that calls it for new NICs, where it is in force. */
  readonly hotplugRule: string | undefined;
};

/** What iptables' two backends hold. Lines as iptables-save prints them, IPv4 and IPv6. */
export type IptablesFacts = {
  /** Names of tables that the legacy backend has. @see /proc/net/ip_tables_names */
  readonly legacyTables: readonly string[];
  readonly legacy: Known<readonly string[]>;
  readonly nft: Known<readonly string[]>;
};

/** Counters of connection tracking, in sum over the processors, since boot. */
export type ConntrackFacts = {
  readonly count: number;
  readonly max: number;
  readonly drop: number;
  readonly earlyDrop: number;
  readonly insertFailed: number;
};

/** One family's neighbour table, over all namespaces. */
export type NeighTableFacts = { readonly entries: number; readonly tableFulls: number };

/** What of the kernel is no network state. */
export type KernelFacts = {
  /** As uname -r. */
  readonly release: string;
  /** True when booted with ipv6.disable=1, or without the module. */
  readonly hasIpv6: boolean;
  /** Undefined where the kernel has no connection tracking. */
  readonly conntrack: ConntrackFacts | undefined;
  readonly neigh: { readonly ipv4: NeighTableFacts | undefined; readonly ipv6: NeighTableFacts | undefined };
};

/** inotify instances of root. */
export type InotifyFacts = { readonly used: number; readonly max: number };

/** A DHCP client in the node's namespace. */
export type DhcpClient = { readonly pid: number; readonly args: readonly string[] };

/** The agent's socket, as a connection attempt finds it. */
export type SocketFacts = { readonly path: string; readonly problem: string | undefined };

/** How the agent says it is; undefined where it is too old to say. */
export type AgentStatus = {
  /** CNI error code; 0: it can serve. */
  readonly code: number;
  readonly message: string;
  readonly details: string;
  /** Repairs that it leaves alone because somebody keeps undoing them. */
  readonly held: readonly string[];
  /** Empty when its last pass was well. */
  readonly lastPassError: string;
};

/** The agent's state folder. */
export type StateDirFacts = {
  readonly path: string;
  readonly exists: boolean;
  readonly journal: 'there' | 'missing' | 'other-boot' | { readonly damage: string };
  readonly isTmpfs: boolean;
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** DELs that wait. */
  readonly spooled: number;
  /** DELs that nobody could read. */
  readonly rejected: number;
};

/** What the container runtime reads. */
export type CniFacts = {
  readonly confDir: string;
  readonly binDir: string;
  /** Files that a runtime considers, in its order. */
  readonly confs: readonly ConfFile[];
  readonly executables: readonly string[];
};

/** All that the doctor knows. */
export type DoctorFacts = {
  readonly node: NodeFacts;
  readonly networkd: Known<NetworkdFacts>;
  readonly networkManager: Known<NetworkManagerFacts>;
  readonly cloudInit: Known<CloudInitFacts>;
  /** Files that set kernel settings at boot, in the order in which they count. */
  readonly sysctlFiles: Known<readonly ConfFile[]>;
  readonly iptables: Known<IptablesFacts>;
  readonly kernel: Known<KernelFacts>;
  readonly inotify: Known<InotifyFacts>;
  readonly dhcpClients: Known<readonly DhcpClient[]>;
  readonly socket: Known<SocketFacts>;
  readonly status: Known<AgentStatus>;
  readonly stateDir: Known<StateDirFacts>;
  readonly cni: Known<CniFacts>;
  /** What `tke-eni diff` finds. */
  readonly differences: Known<readonly Finding[]>;
};
