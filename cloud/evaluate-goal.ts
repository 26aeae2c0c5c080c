import type { Eip, EipGoal, Eni, EniGoal, EniIp } from './cloud.ts';

/**
 * The state of a goal by the description of its object: reached; in transition; or neither. In the last case the
 * description is from before the task began, or the task had no effect.
 */
export type GoalState = 'reached' | 'moving' | 'still';

/** Compares the description of an ENI with the goal of a task; `eni` is undefined when the cloud does not list it. */
export function evaluateEniGoal(goal: EniGoal, eni: Eni | undefined): GoalState {
  if (eni === undefined) return goal.kind === 'deleted' || goal.kind === 'ips-unassigned' ? 'reached' : 'still';
  switch (goal.kind) {
    case 'created':
      return eni.state === 'PENDING' ? 'moving' : areAssigned(eni, goal.ips ?? []);
    case 'attached': {
      const isThere = eni.attachment?.instanceId === goal.instanceId;
      if (eni.state === 'AVAILABLE') return isThere ? 'reached' : 'still';
      return eni.state === 'ATTACHING' || eni.state === 'PENDING' ? 'moving' : 'still';
    }
    case 'detached':
      if (eni.state === 'DETACHING') return 'moving';
      return eni.state === 'AVAILABLE' && eni.attachment === undefined ? 'reached' : 'still';
    case 'deleted':
      return eni.state === 'DELETING' ? 'moving' : 'still';
    case 'ips-assigned':
      return areAssigned(eni, goal.ips);
    case 'ips-unassigned': {
      const left = bothFamilies(eni).filter((candidate) => goal.ips.includes(candidate.ip));
      if (left.length === 0) return 'reached';
      return left.some((ip) => ip.state === 'DELETING' || ip.state === 'MIGRATING') ? 'moving' : 'still';
    }
  }
}

function areAssigned(eni: Eni, ips: readonly string[]): GoalState {
  const states = ips.map((ip) => bothFamilies(eni).find((candidate) => candidate.ip === ip)?.state);
  if (states.every((state) => state === 'AVAILABLE')) return 'reached';
  return states.some((state) => state === 'PENDING' || state === 'MIGRATING') ? 'moving' : 'still';
}

function bothFamilies(eni: Eni): readonly EniIp[] {
  return eni.ipv6s === undefined ? eni.ips : [...eni.ips, ...eni.ipv6s];
}

const EIP_MOVING: readonly string[] = ['CREATING', 'BINDING', 'UNBINDING', 'OFFLINING'];

/** Compares the descriptions of EIPs with the goal of a task; the slowest EIP decides. */
export function evaluateEipGoal(goal: EipGoal, eips: readonly Eip[]): GoalState {
  const states = goal.eipIds.map((eipId): GoalState => {
    const eip = eips.find((candidate) => candidate.eipId === eipId);
    if (eip === undefined) return goal.kind === 'eip-released' ? 'reached' : 'still';
    if (EIP_MOVING.includes(eip.status)) return 'moving';
    if (goal.kind === 'eip-unbound') return eip.status === 'UNBIND' ? 'reached' : 'still';
    if (goal.kind === 'eip-bound') return eip.status === 'BIND' || eip.status === 'BIND_ENI' ? 'reached' : 'still';
    return 'still';
  });
  if (states.every((state) => state === 'reached')) return 'reached';
  return states.includes('moving') ? 'moving' : 'still';
}

/** Reports whether a goal is one of an EIP task. */
export function isEipGoal(goal: EniGoal | EipGoal): goal is EipGoal {
  return 'eipIds' in goal;
}
