import type { ApiFailure } from '../../../agent/api/ops-messages.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { agentPodCommand } from './agent-pod-command.ts';
import { type Check, done, skipped, whenKnown } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';

/** Checks that the agent answers, can serve an ADD and can repair. */
export const AGENT_CHECK: Check = {
  id: 'agent',
  scope: 'it answers, could serve an ADD, is refused nothing by the API server, and no program undoes its repairs',
  finds: [
    'agent-dead',
    'agent-not-ready',
    'api-refused',
    'api-failing',
    'repair-fight',
    'repair-failing',
    'agent-privileged',
  ],
  evaluate: ({ node, socket, status, agentProcess }) =>
    whenKnown(socket, ({ path, problem }) => {
      if (problem !== undefined) {
        const what = `no agent answers on ${path}: ${problem}`;
        return done([
          finding('agent-dead', { what, fix: [agentPodCommand(node, 'get'), `ls -l ${path}`], subjects: [] }),
        ]);
      }
      const privileged = privilegedOf(agentProcess);
      if (status.kind === 'unknown') return done(privileged, [`it answers; its status is not known: ${status.why}`]);
      const { code, message, details, held, lastPassError, apiFailures = [] } = status.value;
      const reason = [message, details].filter((text) => text !== '').join(': ');
      const notReady = {
        what: `the agent says (CNI code ${code}): ${reason}`,
        fix: ['tke-eni status', agentPodCommand(node, 'get')],
      };
      const failing = { what: `the agent's last repair pass failed: ${lastPassError}`, fix: ['tke-eni events'] };
      const fights = held.map((line) =>
        finding('repair-fight', {
          what: `another program keeps undoing: ${line}`,
          fix: ['tke-eni watch'],
          subjects: [],
        }),
      );
      return done(
        [
          ...(code === 0 ? [] : [finding('agent-not-ready', { ...notReady, subjects: [] })]),
          ...apiFailures.map((failure) => failureOf(node, failure)),
          ...fights,
          ...(lastPassError === '' ? [] : [finding('repair-failing', { ...failing, subjects: [] })]),
          ...privileged,
        ],
        [code === 0 ? 'it answers and is ready' : 'it answers'],
      );
    }),
};

/** The account that the API server names in what it refuses for want of a right. */
const REFUSED_ACCOUNT = /User "system:serviceaccount:([a-z0-9-]+):([a-z0-9.-]+)" cannot /;

function failureOf(node: DoctorFacts['node'], { kind, call, text, summary, isNeededByPods }: ApiFailure): Finding {
  const [, namespace = 'kube-system', account = 'tke-eni-agent'] = REFUSED_ACCOUNT.exec(text) ?? [];
  const look = agentPodCommand(node, 'get', namespace);
  const [verb = '', place = ''] = call.split(' ');
  const [resource = '', subresource] = place.split('/');
  const what = subresource === undefined ? resource : `${resource} --subresource=${subresource}`;
  const whoMay = `kubectl auth can-i ${verb} ${what} --as=system:serviceaccount:${namespace}:${account}`;
  const fix = kind === 'refused' && resource !== '' ? [whoMay, look] : ['kubectl get --raw /readyz', look];
  return finding(kind === 'refused' ? 'api-refused' : 'api-failing', {
    ...{ what: summary, fix, subjects: [] },
    ...(isNeededByPods ? {} : { severity: 'warning' as const }),
  });
}

/** Outside a container all root processes have every capability, and no manifest decides about that. */
function privilegedOf(fact: DoctorFacts['agentProcess']): readonly Finding[] {
  if (fact.kind === 'unknown' || fact.value === undefined) return [];
  const { pid, isInContainer, isPrivileged } = fact.value;
  if (isInContainer !== true || !isPrivileged) return [];
  const what = `the container of the agent (process ${pid}) is privileged; it needs three capabilities`;
  return [finding('agent-privileged', { what, fix: ['tke-eni cluster', 'kubectl version'], subjects: [] })];
}

/**
 * Less free space than this counts as nearly full. A journal of 500 Pods needs 1 MiB, and other programs write there
 * too.
 */
const MIN_FREE_BYTES = 8 * 1024 * 1024;

/** Checks the agent's state folder: journal, file system, waiting DELs. */
export const STATE_CHECK: Check = {
  id: 'state-folder',
  scope: 'the agent’s state folder: journal, boot, tmpfs, free space, DELs that wait',
  finds: [
    'journal-missing',
    'journal-unreadable',
    'journal-of-another-boot',
    'state-dir-not-tmpfs',
    'state-dir-full',
    'spool-not-drained',
  ],
  evaluate: ({ node, stateDir, socket }) =>
    whenKnown(stateDir, (state) => {
      const restart = agentPodCommand(node, 'delete');
      if (!state.exists || state.journal === 'missing') {
        const what = state.exists ? `there is no journal.db in ${state.path}` : `there is no folder ${state.path}`;
        return done([finding('journal-missing', { what, fix: [agentPodCommand(node, 'get')], subjects: [] })]);
      }
      const isAlive = socket.kind === 'known' && socket.value.problem === undefined;
      return done([
        ...(typeof state.journal === 'object'
          ? [finding('journal-unreadable', { what: state.journal.damage, fix: [restart], subjects: [] })]
          : []),
        ...(state.journal === 'other-boot'
          ? [
              finding('journal-of-another-boot', {
                what: `the journal in ${state.path} is of an earlier boot`,
                fix: [restart],
                subjects: [],
              }),
            ]
          : []),
        ...(state.isTmpfs
          ? []
          : [
              finding('state-dir-not-tmpfs', {
                what: `${state.path} is on no tmpfs`,
                fix: [`findmnt -T ${state.path}`],
                subjects: [],
              }),
            ]),
        ...fullness(state.path, state.freeBytes, state.totalBytes),
        ...(isAlive ? spooled(state.path, state.spooled, state.rejected) : []),
      ]);
    }),
};

function fullness(path: string, freeBytes: number, totalBytes: number) {
  // Some file systems report 0 bytes free of 0.
  if (totalBytes === 0 || freeBytes >= MIN_FREE_BYTES) return [];
  const what = `${path} has ${Math.floor(freeBytes / 1024)} KiB left of ${Math.floor(totalBytes / 1024)}`;
  const fix = [`du -xah ${path}/.. | sort -h | tail -20`];
  return [finding('state-dir-full', { what, fix, subjects: [], severity: freeBytes === 0 ? 'error' : 'warning' })];
}

function spooled(path: string, waiting: number, rejected: number) {
  if (waiting === 0 && rejected === 0) return [];
  const counts = [
    ...(waiting > 0 ? [`${waiting} wait`] : []),
    ...(rejected > 0 ? [`${rejected} could not be read`] : []),
  ];
  const what = `of the DELs in ${path}/deletions ${counts.join(', ')} though the agent runs`;
  return [finding('spool-not-drained', { what, fix: [`ls -l ${path}/deletions`, 'tke-eni events'], subjects: [] })];
}

/** Matches a CNI configuration that names one of our plugins, or Multus, which calls them. */
const OUR_TYPES = /"type"\s*:\s*"(tke-route-eni|tke-direct-eni|tke-eni-ipamc|tke-cni|multus|multus-shim)"/;

/** Checks the CNI files that the container runtime reads: our configuration is the first one, its executables exist. */
export const CNI_CHECK: Check = {
  id: 'cni',
  scope: 'CNI configuration is ours and first, its executables are there',
  finds: ['cni-conf-missing', 'cni-conf-not-first', 'plugin-missing'],
  evaluate: ({ node, cni }) => {
    const record = ifKnown(node.agent)?.node;
    if (record !== undefined && ifKnown(record)?.role === 'uplinks')
      return skipped('the agent wires no Pods here (--role=uplinks)');
    return whenKnown(cni, ({ confDir, binDir, confs, executables }) => {
      // Runtimes skip files that they cannot parse.
      const readable = confs.filter(({ text }) => typesOf(text).length > 0);
      const ours = readable.findIndex(({ text }) => OUR_TYPES.test(text));
      const conf = readable[ours];
      if (conf === undefined) {
        const what = `none of the ${confs.length} files in ${confDir} names a plugin of ours`;
        return done([
          finding('cni-conf-missing', { what, fix: [agentPodCommand(node, 'get'), `ls -l ${confDir}`], subjects: [] }),
        ]);
      }
      const [first] = readable;
      const notFirst =
        ours === 0 || first === undefined
          ? []
          : [
              finding('cni-conf-not-first', {
                what: `${first.path} comes before ${conf.path}`,
                fix: [`mv ${first.path} ${first.path}.unused`],
                subjects: [],
              }),
            ];
      const missing = typesOf(conf.text).filter((type) => !executables.includes(type));
      const plugins = missing.map((type) =>
        finding('plugin-missing', {
          what: `${conf.path} names ${type}, and ${binDir} has no such file`,
          fix: [agentPodCommand(node, 'get'), `ls -l ${binDir}`],
          subjects: [],
        }),
      );
      return done([...notFirst, ...plugins], [`${conf.path} counts`]);
    });
  },
};

/** Returns the plugins that a configuration names, delegates included. */
function typesOf(text: string): readonly string[] {
  const types: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === 'type' && typeof inner === 'string') types.push(inner);
      else visit(inner);
    }
  };
  try {
    visit(JSON.parse(text));
  } catch {
    return [];
  }
  return [...new Set(types)];
}

/** Checks that Pods with an exclusive ENI reach Services: their routes need the ranges. */
export const SERVICE_CIDRS_CHECK: Check = {
  id: 'service-cidrs',
  scope: 'on a node with exclusive ENIs: the ranges of Services, which their Pods reach through the node',
  finds: ['service-cidrs-unknown'],
  evaluate: ({ node }) => {
    const agent = ifKnown(node.agent);
    const planned = agent === undefined ? undefined : ifKnown(agent.node)?.node;
    if (planned?.hasDirect !== true) return skipped('the agent plans no exclusive ENI');
    const { serviceCidrs = [] } = planned;
    if (serviceCidrs.length > 0) return done([], [serviceCidrs.join(', ')]);
    const fix = ['kubectl get servicecidr', agentPodCommand(node, 'get')];
    const what = 'the agent knows no range of Services: Pods with an exclusive ENI reach no Service and no cluster DNS';
    return done([finding('service-cidrs-unknown', { what, fix, subjects: [] })]);
  },
};
