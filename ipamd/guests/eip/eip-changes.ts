import type { Clock } from '../../../runtime/clock.ts';
import { RecentChanges } from '../../calls/recent-changes.ts';
import type { EipIntent, EipSnapshot, EipStatus } from './eip-view.ts';

/** What own calls changed of the EIPs of claims lately. A description may be older. Make one for each term. */
export class EipChanges {
  readonly #changes: RecentChanges;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#changes = new RecentChanges(clock);
  }

  /** Notes a call that is done; `status` is that of before it. */
  note(key: string, { action }: EipIntent, { privateIP }: EipStatus): void {
    if (action === 'AllocateAddresses') this.#changes.note(`${key} made`);
    if (action !== 'AssociateAddress' && action !== 'DisassociateAddress') return;
    const isBound = action === 'AssociateAddress';
    this.#changes.note(`${key} ${isBound ? 'bound' : 'unbound'}`);
    this.#changes.forget(`${key} ${isBound ? 'unbound' : 'bound'}`);
    if (!isBound && privateIP !== undefined) this.#changes.note(`${key} unbound ${privateIP}`);
  }

  /** Reports whether a description that began at `sinceMs` may show the effect of a call although it is of before. */
  mayBeOfBefore(key: string, { action, ips = [] }: EipIntent, sinceMs: number): boolean {
    const opposites = oppositesOf(action, ips).map((what) => `${key} ${what}`);
    return this.#changes.mayPrecede(opposites, `${key} made`, sinceMs);
  }

  /**
   * Reports whether a description that began at `sinceMs` lacks the EIP of a claim, or shows it otherwise than the last call
   * left it, and may be older than that.
   */
  isContradicted(key: string, { eipID, privateIP }: EipStatus, { byId }: EipSnapshot, sinceMs: number): boolean {
    if (eipID === undefined) return false;
    const eip = byId.get(eipID);
    if (eip === undefined) return this.#changes.mayBeRecent(`${key} made`, sinceMs);
    if (this.#changes.isRecent(`${key} bound`, sinceMs)) return eip.privateIp !== privateIP;
    return this.#changes.isRecent(`${key} unbound`, sinceMs) && eip.status !== 'UNBIND';
  }
}

/** The changes after which what a call makes may have been so before. */
function oppositesOf(action: EipIntent['action'], ips: readonly string[]): readonly string[] {
  switch (action) {
    case 'AssociateAddress':
      return ips.map((ip) => `unbound ${ip}`);
    case 'DisassociateAddress':
      return ['bound'];
    case 'ReleaseAddresses':
      return ['made'];
    default:
      return [];
  }
}
