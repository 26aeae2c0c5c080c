import { dirname, join } from 'node:path';
import { enterNetns } from '../dataplane/enter-netns.ts';
import { openNft } from '../dataplane/nft.ts';
import { type Monitor, type MonitorGroup, openMonitor } from '../netlink/monitor.ts';
import { openRtnetlink } from '../netlink/rtnetlink.ts';
import type { Clock } from '../runtime/clock.ts';
import { messageOf } from '../runtime/error-text.ts';
import { serveHttpEndpoints } from '../runtime/http-endpoints.ts';
import type { Logger } from '../runtime/log.ts';
import { collectNodeMetrics } from '../runtime/metrics/metric-table.ts';
import { openSysctl } from '../sysctl/sysctl.ts';
import { watchSpool } from './attachment/spool.ts';
import { readMasqChains } from './bridge/masq-chains.ts';
import type { AgentConfig } from './config/options.ts';
import { openCriView } from './cri/cri-client.ts';
import { openKubelet } from './device-plugin/kubelet.ts';
import { openConnectionKeeper } from './fast-path/open-connection-keeper.ts';
import { openPrograms } from './fast-path/open-programs.ts';
import { openConntrack } from './host/conntrack.ts';
import { releaseMemory } from './host/release-memory.ts';
import type { HostPorts, OpenedKernel, Served } from './host-ports.ts';
import { removeConflist } from './install/conflist.ts';
import { openInstallation } from './install/installation.ts';
import { readBootId } from './journal/boot-id.ts';
import { openJournal } from './journal/journal.ts';
import { findNodeRecord } from './journal/node-file.ts';
import { FOUND_STATE_FILE, openFoundState } from './node/found-state.ts';
import { openNamespaces } from './node/namespaces.ts';
import { readNetworkConfs } from './node/network-confs.ts';
import { readServers } from './node/node-peers.ts';
import { readHostDump } from './node/node-probe.ts';
import { createNodeRecordWriter } from './node/node-record-writer.ts';
import { refuseProduct } from './node/refuse-product.ts';
import { openExplainer } from './ops/explainer.ts';
import { opsService } from './ops/ops-service.ts';
import { openHostLocalFiles } from './pod-cidr/host-local-files.ts';
import { openOwnWrites } from './repair/own-writes.ts';
import { agentImplementation } from './server/agent-service.ts';
import { readPendingInput, serveGrpc } from './server/grpc-server.ts';
import { runCall } from './server/run-call.ts';
import { refuseLiveSocket } from './server/unix-socket.ts';
import { openSupplyFile } from './supply/supply-file.ts';

/** What of its process the machine needs. */
type MachineDeps = { readonly clock: Clock; readonly log: Logger; readonly release: string };

/** Opens the machine that this process runs on: its kernel, its files, its sockets, its runtimes. */
export function openMachine(config: AgentConfig, deps: MachineDeps): HostPorts {
  const { stateDir, hostRoot, cniConfDir, criSockets, kubeletDir } = config;
  const { clock, log, release } = deps;
  const bootId = readBootId();
  return {
    bootId,
    refuseOthers: async () => {
      await refuseLiveSocket(config.socket);
      await refuseProductHere(config);
    },
    openJournal: () => openJournal(join(stateDir, 'journal.db'), { clock, log }),
    openKernel: () => openKernel(log),
    openPrograms,
    openMonitor: openKernelMonitor,
    namespaces: openNamespaces(hostRoot),
    conntrack: openConntrack(log),
    view: criSockets.length === 0 ? undefined : openCriView(criSockets),
    kubelet: kubeletDir === '' ? undefined : openKubelet(kubeletDir),
    reservations: openHostLocalFiles(hostRoot, config.grHostLocalDir, log),
    openFoundState: (bridgeName) => openFoundState(join(stateDir, FOUND_STATE_FILE), bootId, log, bridgeName),
    findNodeRecord: () => findNodeRecord(stateDir),
    planned: createNodeRecordWriter({ ...recordedOf(config), log, bootId, agentRelease: release }),
    readNetworkConfs: () => readNetworkConfs(cniConfDir),
    readServers: () => readServers(config.master),
    readMasqChains,
    openSupply: ({ inForce }) => openSupplyFile(config.supplyFile, { clock, log, inForce }),
    // Executables know only the socket, and spool beside it.
    watchSpool: (dels) => watchSpool({ ...dels, directory: join(dirname(config.socket), 'deletions'), clock, log }),
    serve: (served) => serve(config, deps, served),
    serveHttp: (sources) => serveHttpEndpoints(config.metricsAddress, sources),
    openInstallation: (listener) =>
      listener === undefined
        ? openInstallation({ ...config, pluginDir: '' }, { log, release, clock })
        : openInstallation(config, { log, release, clock, listener, otherAgent: () => whyRefused(config) }),
    removeConflist: () => removeConflist(cniConfDir),
    openExplainer: (handlers) => openExplainer({ stateDir, hostRoot }, handlers),
    readPendingInput,
    afterTurn: (run) => {
      setImmediate(run);
    },
    releaseMemory,
    collectProcessMetrics: collectNodeMetrics,
  };
}

/** Two writers would fight over the node's routes. @throws AgentError */
async function refuseProductHere({ besideProduct }: AgentConfig): Promise<void> {
  if (besideProduct === 'ignore') return;
  using rtnetlink = openRtnetlink();
  await refuseProduct(() => readHostDump(rtnetlink));
}

/** Asks again before this node's Pods come here: the product's agent may have started since. */
async function whyRefused(config: AgentConfig): Promise<string | undefined> {
  try {
    await refuseProductHere(config);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function openKernel(log: Logger): OpenedKernel {
  const rtnetlink = openRtnetlink();
  const ownWrites = openOwnWrites(rtnetlink);
  const nft = openNft({ loading: ownWrites.noteProcess });
  const connections = openConnectionKeeper(log);
  return { kernel: { rtnetlink, sysctl: openSysctl(), nft, enter: enterNetns, connections }, ownWrites };
}

const MONITOR_BUFFER_BYTES = 8 << 20;
/** What an ADD changes is read after its answer, and what many change at once is read together. */
const MONITOR_GATHER_MS = 10;

function openKernelMonitor(groups: readonly MonitorGroup[]): Monitor {
  return openMonitor({ groups, rcvbufBytes: MONITOR_BUFFER_BYTES, gatherMs: MONITOR_GATHER_MS });
}

function recordedOf({ stateDir, nodeName, role }: AgentConfig) {
  return { stateDir, nodeName, ...(role === 'uplinks' ? { role } : {}) };
}

async function serve(
  { socket: socketPath, hostRoot, listenAddress }: AgentConfig,
  { clock, log, release }: MachineDeps,
  { useCases, ops, signal }: Served,
) {
  const implementation = agentImplementation(useCases, release, signal, (calls, request, ended) =>
    runCall({ socketPath, hostRoot, clock, calls }, request, ended),
  );
  const tcp = listenAddress === '' ? {} : { tcp: { address: listenAddress, log, clock } };
  return await serveGrpc(implementation, { socketPath, ...tcp }, opsService(ops, release));
}
