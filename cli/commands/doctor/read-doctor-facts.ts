import { accessSync, constants, readdirSync, statfsSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { readBootId } from '../../../agent/journal/boot-id.ts';
import { readJournal } from '../../../agent/journal/read-journal.ts';
import { assessNode } from '../../../inspection/judge/assess-node.ts';
import { compareNode } from '../../../inspection/judge/compare-node.ts';
import { findingOf, isDifferent } from '../../../inspection/judge/difference.ts';
import { buildNodeModel, type NodeModel } from '../../../inspection/model/node-model.ts';
import { type HostTree, knownFrom, openHostTree } from '../../../inspection/node/host-tree.ts';
import { known, unknown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import { readIptables } from '../../../inspection/node/read-iptables.ts';
import { type ProcFacts, readProc } from '../../../inspection/node/read-kernel.ts';
import { readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import { netnsPathOf, withNodeNetns } from '../../../inspection/node/with-node-netns.ts';
import { withNetns } from '../../../netlink/netns.ts';
import { messageOf } from '../../../runtime/error-text.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { LONGER_WAIT } from '../../agent/agent-errors.ts';
import { askHandlers } from '../../agent/ask-handlers.ts';
import { type AgentPlace, isTooOld, openOpsClient } from '../../agent/ops-client.ts';
import type { CommandContext, GlobalArgs } from '../../command/command.ts';
import { observeNode } from '../diff/observe-node.ts';
import type {
  AgentStatus,
  CniFacts,
  DoctorFacts,
  HostLocalAddress,
  SocketFacts,
  StateDirFacts,
} from './doctor-facts.ts';
import { readSysctlFiles } from './read-conf-files.ts';
import { readCloudInit, readNetworkd, readNetworkManager } from './read-network-services.ts';
import { readAgentProcess, readDhcpClients, readInotify } from './read-processes.ts';

/** Folders of CNI configuration and executables on the host. */
type CniFolders = { readonly confDir: string; readonly binDir: string };

/**
 * Reads the input of all checks; changes nothing. A fact that cannot be read is unknown, with the reason.
 * @throws UserError when the node's own namespace cannot be read
 */
export async function readDoctorFacts(
  { global }: Pick<CommandContext, 'global'>,
  folders: CniFolders,
): Promise<DoctorFacts> {
  const tree = openHostTree(global.hostRoot);
  const hostLocal = knownFrom(() => readHostLocal(tree));
  const node = await readNodeFacts({ global }, { handlers: () => askHandlers(global) });
  const model = buildNodeModel(node);
  const proc = knownFrom(() => withNodeNetns(global, (netns) => (netns ? withNetns(netns, readProc) : readProc())));
  const netnsPath = global.netns === undefined ? undefined : netnsPathOf(global);
  const agent = await readAgent(global);
  return {
    ...{ node, model },
    networkd: knownFrom(() => readNetworkd(tree)),
    networkManager: knownFrom(() => readNetworkManager(tree)),
    cloudInit: knownFrom(() => readCloudInit(tree)),
    sysctlFiles: knownFrom(() => readSysctlFiles(tree)),
    iptables: await iptablesOf(proc, netnsPath),
    kernel: proc.kind === 'known' ? known(proc.value.kernel) : proc,
    inotify: knownFrom(readInotify),
    dhcpClients: knownFrom(() => readDhcpClients(netnsPath ?? '/proc/self/ns/net')),
    ...agent,
    agentProcess: knownFrom(() => readAgentProcess(global.socket)),
    ...(await assess(global, model)),
    stateDir: knownFrom(() => readStateDir(global.stateDir)),
    // Those of Pods that came or went meanwhile have a lease that was not read.
    hostLocal:
      hostLocal.kind === 'unknown' ? hostLocal : knownFrom(() => remaining(hostLocal.value, readHostLocal(tree))),
    cni: knownFrom(() => readCni(tree, folders.confDir, folders.binDir)),
  };
}

async function readAgent(global: AgentPlace): Promise<Pick<DoctorFacts, 'socket' | 'status'>> {
  const { socket: path } = global;
  const socket = await readSocket(global);
  const silent = unknown('no agent answers', 'see agent-dead');
  if (socket.kind === 'unknown' || socket.value.problem !== undefined) return { socket, status: silent };
  const answer = await readStatus(global);
  return answer.problem === undefined
    ? { socket, status: answer.status }
    : { socket: known({ path, problem: answer.problem }), status: silent };
}

async function iptablesOf(proc: Known<ProcFacts>, netnsPath: string | undefined): Promise<DoctorFacts['iptables']> {
  const tables = proc.kind === 'known' ? proc.value.legacyTables : proc;
  if (tables.kind === 'unknown') return unknown('iptables shows itself to root only', tables.next);
  return known(await readIptables({ netnsPath, legacyTables: tables.value }));
}

/** Result of reading the agent's status: the status, why it is not available, or a problem of the agent. */
type StatusAnswer =
  | { readonly status: Known<AgentStatus>; readonly problem?: undefined }
  | { readonly problem: string };

/**
 * Reads the status from the agent. Never rejects with UserError. An agent that accepts connections and does not answer
 * has a problem.
 */
async function readStatus(place: AgentPlace): Promise<StatusAnswer> {
  try {
    using client = await openOpsClient(place);
    const { status, held, lastPassError, bridge, fastPath, apiFailures } = await client.summary();
    if (status === undefined) return { status: unknown('the agent did not report it', 'tke-eni status') };
    const { code, msg: message, details } = status;
    return {
      status: known({
        ...{ code, message, details, held, lastPassError, apiFailures },
        ...(bridge === undefined ? {} : { bridge }),
        ...(fastPath === undefined ? {} : { fastPath }),
      }),
    };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    if (error.code === 'NO_AGENT' && !isTooOld(error)) return { problem: withoutPreface(error.message, place.socket) };
    return { status: unknown(error.message, error.next) };
  }
}

/**
 * Removes the beginning of the message: the finding itself says that the agent does not answer, and on which socket.
 */
function withoutPreface(message: string, socket: string): string {
  return message.replace(/^the agent does not answer: /, '').replace(`the agent on ${socket}`, 'it');
}

/** Timeout of the connection, milliseconds, or what `--agent-timeout` says above it. */
const TIMEOUT_MS = 2_000;

/** Checks whether a process accepts connections on the agent's socket. Never rejects. */
function readSocket({ socket: path, agentTimeoutMs }: AgentPlace): Promise<Known<SocketFacts>> {
  const waitMs = Math.max(TIMEOUT_MS, agentTimeoutMs);
  return new Promise((resolve) => {
    const socket = connect(path);
    const end = (problem: string | undefined) => {
      socket.destroy();
      resolve(known({ path, problem }));
    };
    socket.setTimeout(waitMs, () => end(`it does not take the connection within ${waitMs / 1000} s; ${LONGER_WAIT}`));
    socket.once('connect', () => end(undefined));
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EACCES' || error.code === 'EPERM') {
        socket.destroy();
        resolve(unknown(`${path} is root's alone`, 'run as root'));
      } else end(problemOf(error));
    });
  });
}

function problemOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'there is no such socket';
  return code === 'ECONNREFUSED' ? 'it has ended' : message;
}

/**
 * Compares the node with its agent's records, as `tke-eni diff` does. Where they cannot be read, the number is unknown, and
 * the kernel's own state is all there is.
 */
async function assess(global: GlobalArgs, model: NodeModel): Promise<Pick<DoctorFacts, 'differences' | 'assessed'>> {
  try {
    const found = compareNode(await observeNode({ global })).differences.filter(isDifferent);
    return { differences: known(found.length), assessed: found.map(findingOf) };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const differences = unknown(error.message, error.next);
    return { differences, assessed: assessNode(model, differences).differences.filter(isDifferent).map(findingOf) };
  }
}

/** Returns what two reads have in common. */
function remaining(
  before: readonly HostLocalAddress[],
  after: readonly HostLocalAddress[],
): readonly HostLocalAddress[] {
  const seen = new Set(before.map(({ ip, containerId }) => `${ip} ${containerId}`));
  return after.filter(({ ip, containerId }) => seen.has(`${ip} ${containerId}`));
}

/** Names of configuration files that runtimes read. @see containernetworking/cni libcni ConfFiles */
const CONF = /\.(conf|conflist|json)$/;

/** Reads the CNI files that a container runtime reads. @throws Error when permission is missing */
function readCni(tree: HostTree, confDir: string, binDir: string): CniFacts {
  const names = tree.names(confDir).filter((name) => CONF.test(name));
  return {
    confDir,
    binDir,
    confs: names.map((name) => ({ path: `${confDir}/${name}`, text: tree.text(`${confDir}/${name}`) ?? '' })),
    executables: tree.names(binDir),
  };
}

/** Folder in which host-local records addresses of the product's network. @see containernetworking/plugins host-local */
const HOST_LOCAL_FOLDER = '/var/lib/cni/networks/tke-bridge';

/** Most files that are read. A node has at most 256 Pods of a block. */
const MAX_FILES = 1_024;

/** Reads which addresses host-local has given to Pods of the product's network tke-bridge. @throws Error when permission is missing */
function readHostLocal(tree: HostTree): readonly HostLocalAddress[] {
  const addresses = tree.names(HOST_LOCAL_FOLDER).filter((name) => /^\d+\.\d+\.\d+\.\d+$/.test(name));
  return addresses.slice(0, MAX_FILES).map((ip) => {
    const path = `${HOST_LOCAL_FOLDER}/${ip}`;
    const [containerId = ''] = (tree.text(path) ?? '').split(/\r?\n/);
    return { ip, containerId: containerId.trim().slice(0, MAX_ID), path };
  });
}

/** Longest container id that is shown. */
const MAX_ID = 128;

/** TMPFS_MAGIC. @see statfs(2) */
const TMPFS_MAGIC = 0x01021994;
/** RAMFS_MAGIC: a ramfs too is empty after a reboot. */
const RAMFS_MAGIC = 0x858458f6;

/** Reads the agent's state folder. @throws Error EACCES without root */
function readStateDir(path: string): StateDirFacts {
  if (!isThere(path)) {
    const nothing = { isTmpfs: false, freeBytes: 0, totalBytes: 0, spooled: 0, rejected: 0 };
    return { path, exists: false, journal: 'missing', ...nothing };
  }
  const { type, bavail, bsize, blocks } = statfsSync(path);
  const spool = join(path, 'deletions');
  const spooled = isThere(spool) ? readdirSync(spool) : [];
  return {
    path,
    exists: true,
    journal: readJournalState(join(path, 'journal.db')),
    isTmpfs: type === TMPFS_MAGIC || type === RAMFS_MAGIC,
    freeBytes: bavail * bsize,
    totalBytes: blocks * bsize,
    spooled: spooled.filter((name) => name.endsWith('.json')).length,
    rejected: spooled.filter((name) => name.endsWith('.rejected')).length,
  };
}

/** Returns whether a path exists. Unlike existsSync it throws where permission is missing. @throws Error EACCES */
function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOTDIR') return false;
    throw error;
  }
}

function readJournalState(path: string): StateDirFacts['journal'] {
  if (!isThere(path)) return 'missing';
  accessSync(path, constants.R_OK);
  try {
    return readJournal(path).bootId === readBootId() ? 'there' : 'other-boot';
  } catch (error) {
    return { damage: messageOf(error) };
  }
}
