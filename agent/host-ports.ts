import type { Kernel, NodeKernel } from '../dataplane/kernel.ts';
import type { Monitor, MonitorGroup } from '../netlink/monitor.ts';
import type { HttpEndpointSources, HttpEndpoints } from '../runtime/http-endpoints.ts';
import type { Spool, SpoolDeps } from './attachment/spool.ts';
import type { SandboxView } from './cri/sandbox-view.ts';
import type { Kubelet } from './device-plugin/kubelet.ts';
import type { ProgramsTrial } from './fast-path/open-programs.ts';
import type { Installation, InstallationListener } from './install/installation.ts';
import type { Journal } from './journal/journal-content.ts';
import type { NodeRecord } from './journal/node-record.ts';
import type { FoundStateRecorder } from './node/found-state.ts';
import type { Namespaces } from './node/namespaces.ts';
import type { NetworkConf } from './node/network-confs.ts';
import type { PlannedListener } from './node/node-record-writer.ts';
import type { MetricsRegistry } from './observability/metrics.ts';
import type { Explainer } from './ops/explainer.ts';
import type { OpsUseCases } from './ops/ops-service.ts';
import type { Reservations } from './pod-cidr/host-local-files.ts';
import type { OwnWrites } from './repair/own-writes.ts';
import type { AgentUseCases } from './server/agent-service.ts';
import type { RunningServer } from './server/grpc-server.ts';
import type { Conntrack } from './state/ports.ts';
import type { InForce, SupplySource } from './supply/supply-source.ts';

/** The kernel of the host's namespace, as one agent has it. */
export type OpenedKernel = { readonly kernel: NodeKernel; readonly ownWrites: OwnWrites };

/** What the agent offers to who calls it. */
export type Served = {
  readonly useCases: AgentUseCases;
  readonly ops: OpsUseCases;
  /** Aborts when the agent stops; an ADD that waits for an address then gives up. */
  readonly signal: AbortSignal;
};

/**
 * All that an agent has of its machine. Nothing is opened before it is asked for, and an agent asks for each thing once. The
 * machine's own is `openMachine`; a simulation gives a model. What is opened, its owner closes.
 */
export type HostPorts = {
  /** The id that the kernel chose at boot. */
  readonly bootId: string;
  /** Refuses to start where another agent serves, or the product's works. @throws AgentError */
  refuseOthers(): Promise<void>;
  /** @throws JournalError */
  openJournal(): Journal;
  /** @throws LibcError */
  openKernel(): OpenedKernel;
  /** Loads the programs of the fast path, or uses those that are on links already. Changes nothing else. */
  openPrograms(kernel: Pick<Kernel, 'rtnetlink'>): ProgramsTrial;
  /** Subscribes to changes of the host's namespace. @throws LibcError */
  openMonitor(groups: readonly MonitorGroup[]): Monitor;
  readonly namespaces: Namespaces;
  readonly conntrack: Conntrack;
  /** Undefined when no runtime is configured. */
  readonly view: SandboxView | undefined;
  /** Undefined without kubelet. */
  readonly kubelet: Kubelet | undefined;
  readonly reservations: Reservations;
  /** @param bridgeName returns the name of the bridge that the agent made; undefined while there is none */
  openFoundState(bridgeName: () => string | undefined): FoundStateRecorder;
  /** What the agent before this one planned; undefined when that is not recorded, or by a release that cannot be read. */
  findNodeRecord(): NodeRecord | undefined;
  /** Records what this one plans. */
  readonly planned: PlannedListener;
  /** Reads the network configurations of the machine, by name. */
  readNetworkConfs(): readonly NetworkConf[];
  /** Reads which servers the node needs, by address. */
  readServers(): ReadonlyMap<string, string>;
  /** Finds the chains of ip-masq-agent; undefined where that is not known. */
  readMasqChains(): Promise<readonly string[] | undefined>;
  /** Opens the machine's own source of supply. */
  openSupply(inForce: InForce): SupplySource;
  /** Does the DELs that were left while no agent ran, now and whenever one comes. */
  watchSpool(dels: Pick<SpoolDeps, 'release' | 'pending'>): Spool;
  /** Lets executables, runtimes and people call. @throws the listener's own error */
  serve(served: Served): Promise<RunningServer>;
  /** Serves metrics and health; undefined where that is not wanted. @throws ConfigError */
  serveHttp(sources: HttpEndpointSources): Promise<HttpEndpoints | undefined>;
  /**
   * Opens what keeps executables and network configuration as they are planned. Without a listener nothing is installed.
   */
  openInstallation(listener: InstallationListener | undefined): Installation;
  /** Keeps runtimes from sending Pods here. Idempotent. */
  removeConflist(): void;
  /** @param handlers asks the runtime for the handlers of sandboxes, by container id */
  openExplainer(handlers: () => Promise<ReadonlyMap<string, string>>): Explainer;
  /** Resolves when input that the kernel has by now was read: a caller that hung up before is known to be gone. */
  readPendingInput(): Promise<void>;
  /** Calls `run` after what is due now: notifications that came together are handled before it. */
  afterTurn(run: () => void): void;
  /** Gives memory back that is not needed. @throws LibcError */
  releaseMemory(): void;
  /** Adds the metrics of the process. */
  collectProcessMetrics(registry: MetricsRegistry['registry']): void;
};
