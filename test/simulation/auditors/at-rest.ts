import { recordOf, recordsOf, textOf } from '../../../runtime/json.ts';
import { isServed } from './addresses-in-use.ts';
import { isOfWrongWriter, type OpenAuditor } from './auditor.ts';
import { necFacts } from './nec-facts.ts';

/** Q1: no Pod waits, unless a condition of its node or of its claim says now that something is missing. */
export const openNobodyWaits: OpenAuditor = (world) => ({
  name: 'Q1',
  rest: function* () {
    const short = [...world.objects('nodeeniconfigs'), ...world.objects('vpcipclaims')]
      .filter((one) => recordsOf(recordOf(one['status'])['conditions']).some(isFalse))
      .map(({ metadata: { namespace = '', name } }) => `${namespace}/${name}`);
    for (const { metadata, spec, status } of world.objects('pods')) {
      const node = textOf(recordOf(spec)['nodeName']);
      const isSaid = [`/${node}`, `${metadata.namespace}/${metadata.name}`].some((one) => short.includes(one));
      const mayWait = isSaid || isOfWrongWriter(metadata.name);
      if (recordOf(status)['podIP'] === undefined && node !== '' && !mayWait) yield `${metadata.name} waits`;
    }
  },
});

/** Q2: what the cloud has and what the objects say is the same, both ways. */
export const openCloudIsObjects: OpenAuditor = (world) => ({
  name: 'Q2',
  rest: function* () {
    const said = new Map<string, string>();
    for (const object of world.objects('nodeeniconfigs')) {
      const node = world.objects('nodes').find(({ metadata }) => metadata.name === object.metadata.name);
      const instanceId = textOf(recordOf(node?.['spec'])['providerID']).split('/').at(-1);
      for (const { eniID, state, addresses = [], deviceIndex } of necFacts(object).status.eniInfos ?? []) {
        const ips = addresses.map(({ ip, state: one }) => `${ip} ${one === 'Assigned' ? 'AVAILABLE' : one}`).sort();
        const on = `${state === 'Attached' ? 'AVAILABLE' : state} on ${instanceId} at ${deviceIndex}`;
        said.set(eniID, `${on}: ${ips.join(' ')}`);
      }
    }
    for (const eni of world.host.model.state.enis.values()) {
      if (eni.isPrimary) continue;
      const ips = [...eni.ips.values()].filter(({ isPrimary }) => !isPrimary).map(({ ip, state }) => `${ip} ${state}`);
      const on = `${eni.state} on ${eni.attachment?.instanceId} at ${eni.attachment?.deviceIndex}`;
      const is = `${on}: ${ips.sort().join(' ')}`;
      const says = said.get(eni.eniId);
      if (says !== is) yield `${eni.eniId} is ${is}; the objects say ${says ?? 'nothing'}`;
      said.delete(eni.eniId);
    }
    for (const eniId of said.keys()) yield `${eniId} is in an object, and not in the cloud`;
  },
});

/** Q3: no call is on record, no offer is open, and no task runs. */
export const openNothingUnderWay: OpenAuditor = (world) => ({
  name: 'Q3',
  rest: function* () {
    // One that waits for the next Pod of its name is offered: it may move at any time.
    const retained = new Set(
      world
        .objects('vpcipclaims')
        .map(({ status }) => recordOf(status))
        .filter(({ phase }) => phase === 'Retained')
        .flatMap(({ ips }) => ips as readonly string[]),
    );
    for (const object of world.objects('nodeeniconfigs')) {
      const { spec, status } = necFacts(object);
      const { name } = object.metadata;
      for (const { action } of status.intents ?? []) yield `${name} has ${action} on record`;
      const there = new Map(
        (status.eniInfos ?? []).flatMap((eni) => (eni.addresses ?? []).map((one) => [one.ip, one.assignmentID])),
      );
      for (const { ip, assignmentID } of spec.releasableIPs ?? [])
        if (there.get(ip) === assignmentID && !retained.has(ip)) yield `${name} offers ${ip}`;
    }
    for (const claim of world.objects('eipclaims'))
      for (const one of recordsOf(recordOf(claim['status'])['intents']))
        yield `${claim.metadata.name} has ${textOf(one['action'])} on record`;
    for (const task of world.host.model.state.tasks.values())
      if (task.status === 'RUNNING') yield `a task of the cloud runs: ${task.taskId}`;
  },
});

/** Q4: a node has as many addresses for its pool, and exclusive ENIs, as it wants, and no more above that than its warm targets differ. */
export const openSupplyMeetsDemand: OpenAuditor = (world) => ({
  name: 'Q4',
  rest: function* () {
    for (const object of world.objects('nodeeniconfigs')) {
      const { spec, status } = necFacts(object);
      const { name } = object.metadata;
      const machine = world.machines.find((one) => one.name === name);
      if (machine === undefined || machine.isOff) continue;
      const pool = (status.eniInfos ?? [])
        .flatMap(({ addresses = [] }) => addresses)
        .filter(({ claim, state }) => claim === undefined && state === 'Assigned');
      const wanted = spec.desiredRouteENIIP ?? 0;
      const { routeENIIPMinWarmTarget: least = 5, routeENIIPMaxWarmTarget: most = 5 } = spec;
      const spare = Math.max(0, most - least);
      // A condition may say why there are too few.
      const isShort = pool.length < wanted && !recordsOf(status.conditions).some(isFalse);
      if (isShort) yield `${name} has ${pool.length} addresses and wants ${wanted}`;
      if (pool.length > wanted + spare)
        yield `${name} has ${pool.length} addresses, wants ${wanted}, spare are ${spare}`;
      // A stand-in for an agent says nothing of them.
      const {
        desiredDirectENI = Number.POSITIVE_INFINITY,
        directENIMinWarmTarget: low = 0,
        directENIMaxWarmTarget: high = 0,
      } = spec;
      const whole = (status.eniInfos ?? []).filter(({ mode, claim }) => mode === 'direct-eni' && claim === undefined);
      if (whole.length > desiredDirectENI + Math.max(0, high - low))
        yield `${name} has ${whole.length} exclusive ENIs and wants ${desiredDirectENI}`;
    }
  },
});

/** Q5: what an agent has given away is what sandboxes have. */
export const openLeasesAreSandboxes: OpenAuditor = (world) => ({
  name: 'Q5',
  rest: function* () {
    for (const machine of world.machines) {
      if (machine.isOff) continue;
      const leased = [...machine.agent.addresses].sort().join(' ');
      const had = [...machine.kubelet.sandboxes.values()]
        .flatMap(({ ips }) => ips)
        .sort()
        .join(' ');
      for (const { state, containerId } of machine.whole?.leases ?? [])
        if (state !== 'active') yield `${machine.name}: the lease of ${containerId} is ${state}`;
      if (leased !== had) yield `${machine.name}: leases ${leased}, sandboxes ${had}`;
      for (const ip of machine.agent.addresses)
        if (!isServed(world, machine.instanceId, ip)) yield `${ip} is not on ${machine.name}`;
    }
  },
});

/** Most warnings of one reason about one object in a run, and most times that one thing is said to be done; in a long run one a minute. */
const MOST_EVENTS = 30;

/** Q8: events are few. */
export const openFewEvents: OpenAuditor = (world) => ({
  name: 'Q8',
  rest: function* () {
    const counts = new Map<string, number>();
    for (const event of world.objects('events')) {
      const { name } = event.metadata;
      const isWarning = event['type'] === 'Warning';
      const of = isWarning ? textOf(recordOf(event['involvedObject'])['name']) : name;
      const about = `${textOf(event['reason'])} of ${of}`;
      counts.set(about, (counts.get(about) ?? 0) + Number(event['count'] ?? 1));
    }
    const most = Math.max(MOST_EVENTS, world.time.nowMs / 60_000);
    for (const [about, count] of counts) if (count > most) yield `${about} was said ${count} times`;
  },
});

/** Reasons of conditions by which nothing is missing while a node has a subnet: what was written wrong has no effect. */
const WITHOUT_EFFECT = ['AnnotationInvalid', 'ConfigInvalid'];

function isFalse({ status, reason, message }: Readonly<Record<string, unknown>>): boolean {
  const isMissing = /no subnet is left/.test(textOf(message)) || !WITHOUT_EFFECT.includes(textOf(reason));
  return status === 'False' && isMissing;
}
