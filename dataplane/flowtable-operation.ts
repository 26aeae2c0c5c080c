import { flowtableDeleteCommands, flowtableDeviceCommands } from './fast-path/flowtable.ts';

/** One change of the table with the flowtable. */
export type FlowtableOperation =
  /** Also ends all its flows: each takes the kernel's own way until it is learned again. */
  | { readonly kind: 'replace-flowtable'; readonly commands: string; readonly before?: string }
  | { readonly kind: 'delete-flowtable'; readonly before: string }
  | { readonly kind: 'add-flow-devices' | 'delete-flow-devices'; readonly devices: readonly string[] };

const KINDS: ReadonlySet<string> = new Set<FlowtableOperation['kind']>([
  'replace-flowtable',
  'delete-flowtable',
  'add-flow-devices',
  'delete-flow-devices',
]);

/** Reports whether an operation changes the table of the flowtable. */
export function isFlowtableOperation<O extends { readonly kind: string }>(
  operation: O,
): operation is Extract<O, FlowtableOperation> {
  return KINDS.has(operation.kind);
}

/** Returns the operation that undoes `operation`. */
export function inverseOfFlowtable(operation: FlowtableOperation): FlowtableOperation {
  switch (operation.kind) {
    case 'replace-flowtable':
      return operation.before === undefined
        ? { kind: 'delete-flowtable', before: operation.commands }
        : { kind: 'replace-flowtable', commands: operation.before, before: operation.commands };
    case 'delete-flowtable':
      return { kind: 'replace-flowtable', commands: operation.before };
    case 'add-flow-devices':
      return { ...operation, kind: 'delete-flow-devices' };
    case 'delete-flow-devices':
      return { ...operation, kind: 'add-flow-devices' };
  }
}

/** Returns the nft commands of an operation. */
export function flowtableCommandsOf(operation: FlowtableOperation): string {
  switch (operation.kind) {
    case 'replace-flowtable':
      return operation.commands;
    case 'delete-flowtable':
      return flowtableDeleteCommands();
    case 'add-flow-devices':
      return flowtableDeviceCommands(operation.devices);
    case 'delete-flow-devices':
      return flowtableDeviceCommands(operation.devices, 'delete');
  }
}
