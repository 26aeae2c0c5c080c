import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { readNodeRecord } from '../../agent/journal/node-file.ts';
import { NODE_RECORD_FILE } from '../../agent/journal/node-record.ts';
import { readJournal } from '../../agent/journal/read-journal.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import type { GlobalArgs } from '../command.ts';
import { type BundlePart, type PartContent, textPart, valuePart } from './bundle-part.ts';
import { CNI_CONF_NAMES, keepAllowed } from './redact-value.ts';

/** Of each log the end. */
const LOG_BYTES = 2 << 20;
/** Files of a folder; a node has a few of each kind. */
const MAX_FILES = 16;
const CNI_CONF_DIR = '/etc/cni/net.d';
/** One folder a Pod: `<namespace>_<name>_<uid>/<container>/<restart>.log`. @see kubelet, Pod logs */
const POD_LOGS = '/var/log/pods';
const OUR_PODS = /^[^_]+_tke-eni-(?:agent|ipamd)[^_]*_/;

type Places = Pick<GlobalArgs, 'stateDir' | 'hostRoot'>;

/** What the agent wrote down, the CNI configuration as far as it is known to hold no secret, and the end of our logs. */
export function fileParts(places: Places): readonly BundlePart[] {
  const { stateDir, hostRoot } = places;
  return [
    // By our own decoders: what is not ours in there does not get through.
    { path: 'node/node.json', collect: async () => valuePart(readNodeRecord(join(stateDir, NODE_RECORD_FILE))) },
    { path: 'node/journal.json', collect: async () => valuePart(readJournal(join(stateDir, 'journal.db'))) },
    { path: 'node/cni-conf.json', collect: async () => cniConf(resolveHostPath(hostRoot, CNI_CONF_DIR)) },
    ...logParts(resolveHostPath(hostRoot, POD_LOGS)),
  ];
}

async function cniConf(folder: string): Promise<PartContent> {
  const files = readdirSync(folder).toSorted().slice(0, MAX_FILES);
  return valuePart(
    files.map((name) => {
      if (!/\.conf(?:list)?$|\.json$/.test(name)) return { name, content: '[not CNI configuration: left out]' };
      try {
        const conf: unknown = JSON.parse(readEnd(join(folder, name), LOG_BYTES));
        return { name, content: keepAllowed(conf, CNI_CONF_NAMES) };
      } catch (error) {
        return { name, content: `[cannot be read: ${error instanceof Error ? error.name : 'fault'}]` };
      }
    }),
  );
}

function logParts(folder: string): readonly BundlePart[] {
  const logs = findLogs(folder);
  if (logs.length > 0) {
    return logs.map((path, index) => ({
      path: `logs/${String(index).padStart(2, '0')}-${path.split('/').slice(-3).join('-').slice(-60)}`,
      collect: async () => textPart(readEnd(path, LOG_BYTES)),
    }));
  }
  const why = `no log of a Pod tke-eni-agent under ${folder}; try kubectl -n kube-system logs ds/tke-eni-agent`;
  return [{ path: 'logs/agent.log', collect: async () => ({ kind: 'missing', why }) }];
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

/** Reads the end of a file, from a whole line on. */
function readEnd(path: string, bytes: number): string {
  const fd = openSync(path, 'r');
  try {
    const { size } = fstatSync(fd);
    if (size <= bytes) return readFileSync(fd, 'utf8');
    const end = Buffer.alloc(bytes);
    const count = readSync(fd, end, 0, bytes, size - bytes);
    const text = end.toString('utf8', 0, count);
    return `[the first ${size - bytes} bytes are left out]\n${text.slice(text.indexOf('\n') + 1)}`;
  } finally {
    closeSync(fd);
  }
}
