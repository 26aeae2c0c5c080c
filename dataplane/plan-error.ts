/** Input from which no correct state can be planned; `faults` names each fault. */
export class PlanError extends Error {
  readonly code = 'INVALID_NETWORK';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(`cannot plan the node's network: ${faults.join('; ')}`);
    this.name = 'PlanError';
    this.faults = faults;
  }
}
