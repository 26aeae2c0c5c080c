import type { AgentErrorCode } from '../agent/api/agent-error.ts';
import { CNI_CODE } from '../agent/api/cni-code.ts';
import type { JournalErrorCode } from '../agent/journal/journal-error.ts';
import type { RegionError } from '../cloud/tencent/region-error.ts';
import type { IpamdErrorCode } from '../ipamd/config/ipamd-error.ts';
import type { UserErrorCode } from '../runtime/user-error.ts';
import type { RequestErrorCode } from '../scheduler/http/request-error.ts';

type Explained = { readonly means: string; readonly cure: string };

/** What each CNI code means here and what an operator does. A code without an entry does not compile. */
const CNI: Readonly<Record<keyof typeof CNI_CODE, Explained>> = {
  incompatibleVersion: {
    means: 'the conf asks for a CNI version that we do not support',
    cure: 'use a cniVersion that the message lists',
  },
  unsupportedField: { means: 'the conf has a field that we do not support', cure: 'remove the field' },
  unknownContainer: {
    means: 'CHECK of a container that has no attachment here',
    cure: 'delete the Pod; its sandbox must be made again',
  },
  invalidEnvironment: {
    means: 'CNI_* variables are missing or malformed, or CNI_NETNS is no network namespace',
    cure: 'every fault is in the message; look at the container runtime, which sets them',
  },
  io: {
    means: 'a file or the journal could not be written',
    cure: 'look for a full or read-only /run; DEL still works',
  },
  decode: { means: 'the conf on stdin is not JSON', cure: 'correct the conf file; the message has the place' },
  invalidConf: {
    means: 'the conf has unknown or malformed fields of ours',
    cure: 'every fault is in the message; compare with the conflist that the agent installs',
  },
  tryAgainLater: {
    means: 'the agent does not answer, or the caller gave up first',
    cure: 'the runtime tries again by itself; if it lasts, look at tke-eni-agent and its socket',
  },
  notAvailable: { means: 'STATUS: no ADD can be served now', cure: 'the message says why; ADDs would fail alike' },
  limitedConnectivity: {
    means:
      'STATUS: another program occupies a rule, route or table of ours, or no ENI is set up while Pods have addresses',
    cure: 'remove the foreign rule, route or table that the message names, or choose other numbers',
  },
  poolExhausted: {
    means: 'no address of the wanted family is free, or the one that is kept for the Pod is not there yet',
    cure: 'look at the numbers in the message; add addresses to the supply or wait for the cooldown. Of a kept address the message says what it waits for: [agent.md](../agent.md#kept-addresses)',
  },
  eniGone: { means: 'the ENI of the address is not on this node', cure: 'look whether it was detached in the cloud' },
  conflict: {
    means: 'another program occupies a table, priority or mark that we need; nothing was overwritten',
    cure: 'the details name it; remove it, or start the agent with another --eni-mark-mask',
  },
  checkFailed: {
    means: 'CHECK found differences',
    cure: 'the details list each; the agent repairs the host side by itself, a Pod namespace only by a new sandbox',
  },
  kernel: {
    means: 'the kernel refused a request',
    cure: 'the details have the request as its ip line: run it by hand to see the same error',
  },
  ifnameTaken: {
    means: 'the interface name is taken in the sandbox, or the attachment exists in another namespace',
    cure: 'DEL it first, or choose another CNI_IFNAME',
  },
  internal: { means: 'a fault of ours', cure: 'please report it, with the log of tke-eni-agent' },
};

const AGENT: Readonly<Record<AgentErrorCode, Explained>> = {
  ANOTHER_AGENT: {
    means: 'another agent serves on the socket',
    cure: 'stop it; each would undo the changes of the other',
  },
  SOCKET: { means: 'the socket path cannot be used', cure: 'remove the file that is there, or set --socket' },
  NO_PRIMARY: { means: 'no primary interface was found', cure: 'set --primary-interface' },
  CONFLIST: { means: 'the CNI conf could not be written', cure: 'look at --cni-conf-dir: is it there and writable?' },
  INSTALL: { means: 'the executables could not be installed', cure: 'look at --cni-bin-dir and --plugin-dir' },
  NFT: { means: 'nft is missing or refuses our table', cure: 'install nftables, or use --rule-mode=per-pod' },
  ADOPTION: {
    means: 'attachments exist that the journal does not know, and they could not be adopted without doubt',
    cure: 'the message names each; delete those Pods',
  },
  PODS_LIVE: {
    means:
      '`tke-eni-agent uninstall` found Pods of ours that live, or could not find out whether they do; nothing was changed',
    cure: 'drain the node; the message names each Pod and says what --despite-pods breaks',
  },
  UNINSTALL: {
    means: '`tke-eni-agent uninstall` could not remove something of ours; the rest is removed',
    cure: 'the message names each object and the reason; correct that and run it again',
  },
};

const JOURNAL: Readonly<Record<JournalErrorCode, Explained>> = {
  JOURNAL_FULL: { means: 'the file system of the state folder is full', cure: 'free space; DEL and repair go on' },
  JOURNAL_LOCKED: { means: 'another agent has the journal open', cure: 'stop it, or set --state-dir' },
  JOURNAL_ADDRESS_TAKEN: {
    means: 'another lease has the address already',
    cure: 'a fault of ours, caught before a Pod had the address; please report it with the log',
  },
  JOURNAL_ENI_CONFLICT: {
    means: 'another ENI has the table or mark already',
    cure: 'a fault of ours; please report it with the log',
  },
  JOURNAL_NO_LEASE: { means: 'a lease to commit is not there', cure: 'a fault of ours; please report it with the log' },
  JOURNAL_BROKEN: {
    means: 'the file cannot be read or written and could not be replaced',
    cure: 'look at the file system of --state-dir; a damaged file alone is set aside and replaced by itself',
  },
};

const IPAMD: Readonly<Record<IpamdErrorCode | RegionError['code'], Explained>> = {
  DEFINITION: {
    means: 'a definition of our resources is absent and cannot be created, or differs from the one that is needed',
    cure: 'the message names it: grant the right, apply conf/crd/, or remove what has its name',
  },
  REGION: {
    means: 'the region was not given, and the metadata service of the instance does not report it',
    cure: 'set --region, or look at --metadata-url',
  },
};

const CLI: Readonly<Record<UserErrorCode, Explained>> = {
  USAGE: { means: 'the command line is wrong; exit code 64', cure: 'every fault is in the message' },
  NOT_FOUND: {
    means: 'nothing on this node has that name or address',
    cure: '`tke-eni pods` and `tke-eni enis` list what there is',
  },
  FORBIDDEN: {
    means: 'a right is missing; the message names the thing that was refused',
    cure: "run it as root, or in the agent's container",
  },
  NO_AGENT: {
    means: "no program answers on the agent's socket",
    cure: 'start the agent; what is read from the kernel and the journal needs none',
  },
  NO_JOURNAL: {
    means: 'the agent recorded nothing here, or it cannot be read',
    cure: 'look at --state-dir; without it only the state of the kernel is known, and no desired state',
  },
  NO_CLUSTER: { means: 'no API server answers', cure: 'look at --kubeconfig' },
  NO_CLOUD: { means: 'the cloud does not answer, or refuses us', cure: 'check credentials, region and endpoint' },
  KERNEL: {
    means: 'the kernel refused a request, or output could not be written',
    cure: "the message has the kernel's error text",
  },
  TERMINAL: { means: 'it needs a terminal, and standard output is none', cure: 'kubectl exec -it, or --once' },
  REFUSED: { means: 'a change that must not be made now', cure: 'the message has the reason' },
};

const SCHEDULER: Readonly<Record<RequestErrorCode, Explained>> = {
  FORBIDDEN: {
    means: "the client's certificate is of the right authority and has no name of --client-allowed-names",
    cure: 'give kube-scheduler a certificate with such a common name, or add its name to the setting',
  },
  NOT_FOUND: { means: 'no such path', cure: 'correct urlPrefix and the verbs in KubeSchedulerConfiguration' },
  METHOD: {
    means: 'a verb was asked for by another method than POST',
    cure: 'nothing: the request is not from kube-scheduler',
  },
  TOO_LARGE: {
    means: 'the request is over --body-limit-mib',
    cure: 'set nodeCacheCapable: true for the extender; or raise --body-limit-mib and the memory limit',
  },
  BAD_JSON: { means: 'the request is not JSON, or was cut off', cure: 'find the other client that calls the extender' },
  BAD_SHAPE: {
    means: 'the request is not one of extender/v1; every fault is in the message',
    cure: 'find the client that calls the extender',
  },
  STANDBY: {
    means:
      'no leader answered for 12 s; or, without --client-ca-file, another replica leads, or the caches are not read yet',
    cure: 'kube-scheduler asks again; if it lasts: runbook TkeEniSchedulerNoLeader. /readyz of each replica says what it waits for',
  },
  BUSY: {
    means: 'hundreds of requests at once',
    cure: 'find the client that calls the extender: kube-scheduler asks for one Pod at a time',
  },
};

/** Lists the codes of errors, those of CNI left out, by whose they are. */
export const ERROR_CODES = {
  agent: Object.keys(AGENT),
  journal: Object.keys(JOURNAL),
  cli: Object.keys(CLI),
  ipamd: Object.keys(IPAMD),
  scheduler: Object.keys(SCHEDULER),
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** Renders `docs/reference/errors.md`. */
export function renderErrorDocs(): string {
  const cni = Object.entries(CNI)
    .map(([name, explained]) => ({ number: CNI_CODE[name as keyof typeof CNI_CODE], name, explained }))
    .sort((a, b) => a.number - b.number)
    .map(({ number, name, explained }) => `| ${number} | ${name} | ${explained.means} | ${explained.cure} |`);
  const coded = (codes: Readonly<Record<string, Explained>>) =>
    Object.entries(codes).map(([code, explained]) => `| ${code} | ${explained.means} | ${explained.cure} |`);
  return [
    '<!-- Written by `make gen` from tools/error-docs.ts. -->',
    '# Errors and what to do',
    '',
    'A message names the thing, the place and the next step; this page says what the codes behind them mean.',
    '',
    '## CNI errors',
    '',
    'The event of the Pod (`FailedCreatePodSandBox`) has message and details of the error, and not its code: containerd and',
    'CRI-O leave the code out. The code is in the log of the agent (`attach failed`, field `code`), in `tke-eni events` on the',
    'node, and in the label `code` of `tke_eni_request_seconds`. Where no ADD reaches the agent, there is only the message: the',
    'agent does not answer (11), or environment or configuration are faulty (4, 6, 7). 1 to 99 belong to the CNI',
    'specification, 100 and above are ours.',
    '',
    '| code | name | means | do |',
    '|---|---|---|---|',
    ...cni,
    '',
    '## Errors that stop the agent',
    '',
    'A faulty configuration ends it with exit code 78 and every fault in one message; these end it with exit code 1.',
    '',
    '| code | means | do |',
    '|---|---|---|',
    ...coded(AGENT),
    '',
    '## Errors of tke-eni',
    '',
    'Each is printed with what to do next, and ends it with exit code 2 (64: USAGE): [cli.md](cli.md).',
    '',
    '| code | means | do |',
    '|---|---|---|',
    ...coded(CLI),
    '',
    '## Errors of ipamd',
    '',
    'A faulty configuration ends it with exit code 78; others are logged, and tried again where that can help.',
    '',
    '| code | means | do |',
    '|---|---|---|',
    ...coded(IPAMD),
    '',
    '## Errors of the scheduler extender',
    '',
    'It answers them, as `Error` in JSON, with a status other than 200; kube-scheduler logs the status and tries the Pod again.',
    '',
    '| code | means | do |',
    '|---|---|---|',
    ...coded(SCHEDULER),
    '',
    '## Errors of the journal',
    '',
    '| code | means | do |',
    '|---|---|---|',
    ...coded(JOURNAL),
    '',
  ].join('\n');
}
