import { readdirSync, realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { readNodeRecord } from '../../agent/journal/node-file.ts';
import { NODE_RECORD_FILE } from '../../agent/journal/node-record.ts';
import { readJournal } from '../../agent/journal/read-journal.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import type { GlobalArgs } from '../command.ts';
import { type BundlePart, type PartContent, textPart, valuePart } from './bundle-part.ts';
import { readEnd } from './read-end.ts';
import { CNI_CONF_NAMES, keepAllowed } from './redact-value.ts';

/** Of each log the end. */
const LOG_BYTES = 2 << 20;
/** Files of a folder; a node has a few of each kind. */
const MAX_FILES = 16;
const CNI_CONF_DIR = '/etc/cni/net.d';
/** One folder a Pod: `<namespace>_<name>_<uid>/<container>/<restart>.log`. @see kubelet, Pod logs */
const POD_LOGS = '/var/log/pods';
const OUR_PODS = /^[^_]+_tke-eni-(?:agent|ipamd)[^_]*_/;
/** Where Docker has what the names in a Pod's log folder lead to; its folder can be anywhere. */
const DOCKER_LOG = /\/containers\/([0-9a-f]{64})\/\1-json\.log(?:\.\d+)?$/;

type Places = Pick<GlobalArgs, 'stateDir' | 'hostRoot'>;

/** What the agent wrote down, the CNI configuration as far as it is known to hold no secret, and the end of our logs. */
export function fileParts(places: Places): readonly BundlePart[] {
  const { stateDir, hostRoot } = places;
  return [
    // By our own decoders: what is not ours in there does not get through.
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
        return { name, content: keepAllowed(conf, CNI_CONF_NAMES) };
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
  return [{ path: 'logs/agent.log', collect: async () => ({ kind: 'missing', why }) }];
}

/** As an archive can have it, and a terminal: whoever may write to the folder of logs chose the name. */
function entryName(name: string): string {
  return name.replace(/[^\w.-]/g, '_').slice(-60);
}

/**
 * Follows a log's name as the host does, to a log of Pods or of Docker only: a Pod that may write to the folder could
 * lay a link there to any file of the node.
 */
function logFile(hostRoot: string, path: string): string {
  const file = realPathOn(hostRoot, `${POD_LOGS}/${path}`);
  if (file.startsWith(`${realPathOn(hostRoot, POD_LOGS)}/`) || DOCKER_LOG.test(file)) return file;
  throw new Error(`${POD_LOGS}/${path} leads to ${file}, which is no log`);
}

/** No component of what this returns is a link. */
function realPathOn(hostRoot: string, path: string): string {
  return hostRoot === '' || hostRoot === '/' ? realpathSync(path) : resolveHostPath(hostRoot, path);
}

/** The newest of each container come last by name: kubelet counts restarts. */
function findLogs(folder: string): readonly string[] {
  const list = (path: string): readonly string[] => {
    try {
      return readdirSync(path).toSorted();
    } catch {
      // None of our Pods was here, or the folder is not for us to read.
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
