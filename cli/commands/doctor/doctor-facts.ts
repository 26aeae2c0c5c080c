import type { ApiFailure, BridgePods, FastPath } from '../../../agent/api/ops-messages.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import type { NodeModel } from '../../../inspection/model/node-model.ts';
import type { Known, NodeFacts } from '../../../inspection/node/node-facts.ts';
import type { IptablesFacts } from '../../../inspection/node/parse-iptables-rules.ts';
import type { KernelFacts } from '../../../inspection/node/read-kernel.ts';
import type { ConfFile } from './read-conf-files.ts';

/** State and configuration of systemd-networkd, and udev's link files. */
export type NetworkdFacts = {
  /** False where the host has another init, or its files are not in the usual places. */
  readonly hasSystemd: boolean;
  readonly isActive: boolean;
  /** Version of systemd; undefined when not known. */
  readonly version: number | undefined;
  /** networkd.conf and its drop-ins, in the order of precedence, the strongest last. */
  readonly conf: readonly ConfFile[];
  /** .network files; the first that matches a link configures it. */
  readonly networks: readonly ConfFile[];
  /** .link files; the first that matches a link counts. */
  readonly links: readonly ConfFile[];
  /** Drivers of the NICs, by interface name. */
  readonly drivers: ReadonlyMap<string, string>;
};

/** State and configuration of NetworkManager. */
export type NetworkManagerFacts = {
  /** As in NetworkdFacts. */
  readonly hasSystemd: boolean;
  readonly isActive: boolean;
  /** Configuration files in the order of precedence, the strongest last. */
  readonly conf: readonly ConfFile[];
  /** State file of each device, by ifindex. */
  readonly devices: ReadonlyMap<number, string>;
};

/** State and configuration of cloud-init. */
export type CloudInitFacts = {
  readonly isInstalled: boolean;
  readonly isDisabled: boolean;
  /** cloud.cfg and cloud.cfg.d in the order of precedence, the strongest last. */
  readonly conf: readonly ConfFile[];
  /** Path of the udev rule that starts cloud-init for new NICs; undefined where none is in force. */
  readonly hotplugRule: string | undefined;
};

/** Number of inotify instances of root's processes, and their limit. */
export type InotifyFacts = { readonly used: number; readonly max: number };

/** A process of a DHCP client in the node's network namespace. */
export type DhcpClient = { readonly pid: number; readonly args: readonly string[] };

/** Result of a connection attempt to the agent's socket. */
export type SocketFacts = { readonly path: string; readonly problem: string | undefined };

/** The process that serves the agent's socket. */
export type AgentProcess = {
  readonly pid: number;
  /** True when its root folder is another one than the host's; undefined when that cannot be read. */
  readonly isInContainer: boolean | undefined;
  /** True when it has capabilities that only a privileged container has. */
  readonly isPrivileged: boolean;
};

/** Status that the agent reports. */
export type AgentStatus = {
  /** CNI error code; 0 when the agent can serve. */
  readonly code: number;
  readonly message: string;
  readonly details: string;
  /** Repairs that the agent has suspended because another program keeps undoing them. */
  readonly held: readonly string[];
  /** Error of its last repair pass; '' when it succeeded. */
  readonly lastPassError: string;
  /** What the API server refuses the agent now, or has not answered well for long; absent: nothing. */
  readonly apiFailures?: readonly ApiFailure[];
  /** GlobalRoute Pods; undefined where there are none, and none would be by default. */
  readonly bridge?: BridgePods;
  /** Undefined where it is not asked for. */
  readonly fastPath?: Pick<FastPath, 'wanted' | 'mode' | 'why'>;
};

/** An address that the CNI plugin host-local has given, by its file. */
export type HostLocalAddress = { readonly ip: string; readonly containerId: string; readonly path: string };

/** The agent's state folder. */
export type StateDirFacts = {
  readonly path: string;
  readonly exists: boolean;
  readonly journal: 'there' | 'missing' | 'other-boot' | { readonly damage: string };
  readonly isTmpfs: boolean;
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** Number of DELs that wait in the spool. */
  readonly spooled: number;
  /** Number of spooled DELs that could not be decoded. */
  readonly rejected: number;
};

/** CNI files that the container runtime reads. */
export type CniFacts = {
  readonly confDir: string;
  readonly binDir: string;
  /** Configuration files that a runtime considers, in its order. */
  readonly confs: readonly ConfFile[];
  readonly executables: readonly string[];
};

/** Input of all checks. */
export type DoctorFacts = {
  readonly node: NodeFacts;
  /** The same node, joined. */
  readonly model: NodeModel;
  readonly networkd: Known<NetworkdFacts>;
  readonly networkManager: Known<NetworkManagerFacts>;
  readonly cloudInit: Known<CloudInitFacts>;
  /** Files that set kernel settings at boot, in the order of precedence, the strongest last. */
  readonly sysctlFiles: Known<readonly ConfFile[]>;
  readonly iptables: Known<IptablesFacts>;
  readonly kernel: Known<KernelFacts>;
  readonly inotify: Known<InotifyFacts>;
  readonly dhcpClients: Known<readonly DhcpClient[]>;
  readonly socket: Known<SocketFacts>;
  readonly status: Known<AgentStatus>;
  /** Undefined when its process is not seen from here. */
  readonly agentProcess: Known<AgentProcess | undefined>;
  readonly stateDir: Known<StateDirFacts>;
  readonly cni: Known<CniFacts>;
  /** Addresses of the product's network tke-bridge, as host-local records them. */
  readonly hostLocal: Known<readonly HostLocalAddress[]>;
  /** Number of differences that `tke-eni diff` finds. */
  readonly differences: Known<number>;
  /** What the assessment finds: these differences; without a record, what differs from what the kernel's own state leads to. */
  readonly assessed: readonly Finding[];
};
