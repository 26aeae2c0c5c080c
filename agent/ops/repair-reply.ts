import type { Conflict } from '../../dataplane/conflict.ts';
import type { MigrationStep } from '../../dataplane/migration.ts';
import { type Operation, renderOperation } from '../../dataplane/operation.ts';
import { messageOf } from '../../runtime/error-text.ts';
import type { RepairReplyInit } from '../api/ops-messages.ts';

/** The result of a pass, or of a preview. */
type RepairFindings = {
  readonly operations: readonly Operation[];
  readonly failed: readonly { readonly operation: Operation; readonly error: unknown }[];
  readonly paused: readonly Operation[];
  readonly conflicts: readonly Conflict[];
};

/** Renders the result as command lines that a person would type. */
export function repairReply({ operations, failed, paused, conflicts }: RepairFindings): RepairReplyInit {
  return {
    operations: operations.map(renderOperation),
    failed: failed.map(({ operation, error }) => ({
      operation: renderOperation(operation),
      error: messageOf(error),
    })),
    held: paused.map(renderOperation),
    // A missing link is reported as the problem of its ENI.
    conflicts: conflicts.filter(({ kind }) => kind !== 'link').map(({ message }) => message),
  };
}

/** Describes what a change of rule mode would do, stage by stage. */
export function migrationReply(steps: readonly MigrationStep[]): RepairReplyInit {
  const stages = steps.map(({ what, operations }) => ({ what, operations: operations.map(renderOperation) }));
  return { stages, operations: stages.flatMap(({ operations }) => operations) };
}
