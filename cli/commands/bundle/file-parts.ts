import { closeSync, constants, fstatSync, openSync, readdirSync, readSync, realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { readNodeRecord } from '../../../agent/journal/node-file.ts';
import { NODE_RECORD_FILE } from '../../../agent/journal/node-record.ts';
import { readJournal } from '../../../agent/journal/read-journal.ts';
import { resolveHostPath } from '../../../runtime/host-path.ts';
import type { GlobalArgs } from '../../command/command.ts';
import { type BundlePart, type PartContent, textPart, valuePart } from './bundle-part.ts';
import { CNI_CONF_NAMES, pickAllowed } from './redact-value.ts';

/** Bytes that are kept of each log, from its end. */
const LOG_BYTES = 2 << 20;
/** Limit of files per folder; a node has a few of each kind. */
const MAX_FILES = 16;
const CNI_CONF_DIR = '/etc/cni/net.d';
/** Folder of Pod logs: `<namespace>_<name>_<uid>/<container>/<restart>.log`. @see kubelet, Pod logs */
const POD_LOGS = '/var/log/pods';
const OUR_PODS = /^[^_]+_tke-(?:eni-(?:agent|ipamd|ip-scheduler|ip-webhook)|cloud-controller-manager)[^_]*_/;
/** Log file of a Docker container, to which the names in a Pod's log folder link. Docker's folder can be anywhere. */
const DOCKER_LOG = /\/containers\/([0-9a-f]{64})\/\1-json\.log(?:\.\d+)?$/;

type HostPaths = Pick<GlobalArgs, 'stateDir' | 'hostRoot'>;

/**
 * Returns the parts that are files of the host: journal and node record of the agent, the CNI configuration as far as
 * it is known to contain no secret, and the end of our logs.
 */
export function fileParts(paths: HostPaths): readonly BundlePart[] {
  const { stateDir, hostRoot } = paths;
  return [
    // Read by our own decoders: fields that they do not know are left out.
    { path: 'node/node.json', collect: async () => valuePart(readNodeRecord(join(stateDir, NODE_RECORD_FILE))) },
    { path: 'node/journal.json', collect: async () => valuePart(readJournal(join(stateDir, 'journal.db'))) },
    { path: 'node/cni-conf.json', collect: async () => cniConf(hostRoot) },
    ...logParts(hostRoot),
  ];
}

async function cniConf(hostRoot: string): Promise<PartContent> {
  const files = readdirSync(resolveHostPath(hostRoot, CNI_CONF_DIR)).toSorted().slice(0, MAX_FILES);
  return valuePart(
    files.map((name) => {
      if (!/\.conf(?:list)?$|\.json$/.test(name)) return { name, content: '[not CNI configuration: left out]' };
      try {
        const conf: unknown = JSON.parse(readEnd(realPathOn(hostRoot, `${CNI_CONF_DIR}/${name}`), LOG_BYTES));
        return { name, content: pickAllowed(conf, CNI_CONF_NAMES) };
      } catch (error) {
        return { name, content: `[cannot be read: ${error instanceof Error ? error.name : 'fault'}]` };
      }
    }),
  );
}

function logParts(hostRoot: string): readonly BundlePart[] {
  const folder = resolveHostPath(hostRoot, POD_LOGS);
  const logs = findLogs(folder).map((path) => relative(folder, path));
  if (logs.length > 0) {
    return logs.map((path, index) => ({
      path: `logs/${String(index).padStart(2, '0')}-${entryName(path.replaceAll('/', '-'))}`,
      collect: async () => textPart(readEnd(logFile(hostRoot, path), LOG_BYTES)),
    }));
  }
  const why = `no log of a Pod tke-eni-agent under ${folder}; try kubectl -n kube-system logs ds/tke-eni-agent`;
  return [{ path: 'logs/agent.log', collect: async () => ({ kind: 'skipped', why }) }];
}

/**
 * Returns a name that is safe in an archive and on a terminal: anyone who may write to the folder of logs chose the
 * name.
 */
function entryName(name: string): string {
  return name.replace(/[^\w.-]/g, '_').slice(-60);
}

/**
 * Resolves a log's name as the host does. Only logs of Pods or of Docker are accepted: a Pod that may write to the
 * folder could place a symbolic link there to any file of the node.
 */
function logFile(hostRoot: string, path: string): string {
  const file = realPathOn(hostRoot, `${POD_LOGS}/${path}`);
  if (file.startsWith(`${realPathOn(hostRoot, POD_LOGS)}/`) || DOCKER_LOG.test(file)) return file;
  throw new Error(`${POD_LOGS}/${path} leads to ${file}, which is no log`);
}

/** Returns the path on the host with all symbolic links resolved. */
function realPathOn(hostRoot: string, path: string): string {
  return hostRoot === '' || hostRoot === '/' ? realpathSync(path) : resolveHostPath(hostRoot, path);
}

/**
 * Lists the logs of our Pods, the two newest of each container: kubelet counts restarts, so the newest come last by
 * name.
 */
function findLogs(folder: string): readonly string[] {
  const list = (path: string): readonly string[] => {
    try {
      return readdirSync(path).toSorted();
    } catch {
      // The folder does not exist (no Pod of ours ran here), or permission to read it is missing.
      return [];
    }
  };
  return list(folder)
    .filter((pod) => OUR_PODS.test(pod))
    .flatMap((pod) => list(join(folder, pod)).map((container) => join(folder, pod, container)))
    .flatMap((container) =>
      list(container)
        .filter((name) => name.endsWith('.log'))
        .slice(-2)
        .map((name) => join(container, name)),
    )
    .slice(0, MAX_FILES);
}

/**
 * Reads the end of a regular file, starting at a whole line. It does not follow a symbolic link at the end of the path
 * and does not block: the path may be a pipe, a device or a link to another place.
 * @throws Error when it is no regular file; the file system's own error
 */
function readEnd(path: string, bytes: number): string {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new Error(`${path} is no plain file`);
    const from = Math.max(0, stat.size - bytes);
    // Read at most `bytes`: the file may grow, and some files in /proc report size 0 and never end.
    const text = readAt(fd, from, Math.min(bytes, stat.size)).toString('utf8');
    return from === 0 ? text : `[the first ${from} bytes are left out]\n${text.slice(text.indexOf('\n') + 1)}`;
  } finally {
    closeSync(fd);
  }
}

function readAt(fd: number, from: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  let count = 0;
  while (count < bytes) {
    const read = readSync(fd, buffer, count, bytes - count, from + count);
    if (read === 0) break;
    count += read;
  }
  return buffer.subarray(0, count);
}
