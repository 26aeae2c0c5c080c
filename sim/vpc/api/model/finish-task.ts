import { finishClbTask } from './clb/tasks.ts';
import type { CloudState } from './state.ts';
import type { EipEffect, EniEffect, MigrateEffect, ModelEip, ModelEni, ModelTask } from './types.ts';

/** Ends every task that is due by `nowMs`, in the order of their ends, and sets the state's clock. */
export function advanceState(state: CloudState, nowMs: number): void {
  while ((state.due.leastKey ?? Number.POSITIVE_INFINITY) <= nowMs) {
    const task = state.due.pop();
    if (task === undefined) break;
    state.nowMs = Math.max(state.nowMs, task.dueMs);
    finish(state, task);
  }
  state.nowMs = Math.max(state.nowMs, nowMs);
}

function finish(state: CloudState, task: ModelTask): void {
  const isGood = task.fate === 'succeed';
  task.status = isGood ? 'SUCCESS' : 'FAILED';
  if (task.fate === 'vanish') state.tasks.delete(task.taskId);
  if ('eipIds' in task.effect) finishEips(state, task.effect, isGood);
  else if (task.effect.kind === 'clb') finishClbTask(state, task.effect, isGood);
  else if (task.effect.kind === 'migrate') finishMigration(state, task.effect, isGood);
  else {
    const eni = state.enis.get(task.effect.eniId);
    // The instance may have taken it along meanwhile.
    if (eni !== undefined) finishEni(state, eni, task.effect, isGood);
  }
}

function finishEni(state: CloudState, eni: ModelEni, effect: EniEffect, isGood: boolean): void {
  switch (effect.kind) {
    case 'create':
      if (!isGood) state.removeEni(eni);
      else {
        eni.state = 'AVAILABLE';
        for (const ip of eni.ips.values()) if (ip.state === 'PENDING') ip.state = 'AVAILABLE';
      }
      break;
    case 'attach':
      eni.state = 'AVAILABLE';
      if (isGood) plugIn(state, eni);
      else state.unbind(eni);
      break;
    case 'detach':
      eni.state = 'AVAILABLE';
      if (isGood) {
        state.unbind(eni);
        state.events.push({ kind: 'detach', eniId: eni.eniId });
      }
      break;
    case 'delete':
      if (isGood) state.removeEni(eni);
      else eni.state = 'AVAILABLE';
      break;
    case 'assign':
    case 'unassign':
      finishIps(state, eni, effect.ips, (effect.kind === 'assign') === isGood);
      break;
  }
  state.touch(eni);
}

function finishIps(state: CloudState, eni: ModelEni, ips: readonly string[], isKept: boolean): void {
  for (const address of ips) {
    const ip = eni.ips.get(address);
    if (ip === undefined) continue;
    const wasThere = ip.state === 'DELETING';
    if (isKept) ip.state = 'AVAILABLE';
    else state.removeIp(eni, ip);
    // The router leads to it from the end of an assignment to the end of its removal.
    if (eni.attachment !== undefined && isKept !== wasThere) {
      state.events.push({ kind: isKept ? 'assign' : 'unassign', eniId: eni.eniId, ip: address });
    }
  }
}

function finishMigration(state: CloudState, effect: MigrateEffect, isGood: boolean): void {
  const from = state.enis.get(effect.fromEniId);
  const to = state.enis.get(effect.toEniId);
  const ip = from?.ips.get(effect.ip);
  if (from === undefined || ip === undefined) return;
  ip.state = 'AVAILABLE';
  if (isGood && to !== undefined) {
    from.ips.delete(ip.ip);
    to.ips.set(ip.ip, ip);
    const eip = state.eips.get(ip.eipId ?? '');
    if (eip?.binding !== undefined) {
      eip.binding = { ...eip.binding, eniId: to.eniId };
      state.touchEip(eip);
    }
    state.touch(to);
  }
  state.touch(from);
  if (!isGood || to === undefined) return;
  if (from.attachment !== undefined) state.events.push({ kind: 'unassign', eniId: from.eniId, ip: ip.ip });
  if (to.attachment !== undefined) state.events.push({ kind: 'assign', eniId: to.eniId, ip: ip.ip });
}

function plugIn(state: CloudState, eni: ModelEni): void {
  const primary = [...eni.ips.values()].find((ip) => ip.isPrimary);
  if (eni.attachment === undefined || primary === undefined) return;
  state.events.push({
    kind: 'attach',
    eniId: eni.eniId,
    instanceId: eni.attachment.instanceId,
    subnetId: eni.subnetId,
    mac: eni.mac,
    primaryIp: primary.ip,
  });
  for (const ip of eni.ips.values()) {
    if (!ip.isPrimary && ip.state === 'AVAILABLE') state.events.push({ kind: 'assign', eniId: eni.eniId, ip: ip.ip });
  }
}

function finishEips(state: CloudState, effect: EipEffect, isGood: boolean): void {
  const eips = effect.eipIds.map((eipId) => state.eips.get(eipId)).filter((eip) => eip !== undefined);
  for (const eip of eips) {
    finishEip(state, eip, effect.kind, isGood);
    state.touchEip(eip);
  }
}

function finishEip(state: CloudState, eip: ModelEip, kind: string, isGood: boolean): void {
  const isGone = (kind === 'eip-allocate' && !isGood) || (kind === 'eip-release' && isGood);
  if (isGone) {
    state.eips.delete(eip.eipId);
    return;
  }
  // The address may have gone meanwhile, and the binding with it.
  const { binding } = eip;
  const isBound = binding !== undefined && ((kind === 'eip-bind' && isGood) || (kind === 'eip-unbind' && !isGood));
  eip.status = isBound ? (binding.isOfInstance ? 'BIND' : 'BIND_ENI') : 'UNBIND';
  if (isBound && kind === 'eip-bind') {
    state.events.push({ kind: 'eip-bind', publicIp: eip.publicIp, ip: binding.ip });
  }
  if (isBound) return;
  if (binding !== undefined) state.events.push({ kind: 'eip-unbind', publicIp: eip.publicIp, ip: binding.ip });
  const ip = state.enis.get(binding?.eniId ?? '')?.ips.get(binding?.ip ?? '');
  if (ip?.eipId === eip.eipId) delete ip.eipId;
  delete eip.binding;
}
