import type { SourceLine } from './assemble.ts';
import type { AluOperation, Condition, Helper, Operand, Register, Width } from './instruction.ts';

// The words that sources are written in. Each returns one line.

/** `to = operand` */
export const move = (to: Register, operand: Operand): SourceLine => alu('mov', to, operand);

/** `to = to <operation> operand`, 64 bits wide. */
export function alu(operation: AluOperation, to: Register, operand: Operand): SourceLine {
  return { kind: 'alu', operation, to, operand };
}

/** `to = be<width>(to)`: a number in network order becomes one to count with, or the other way round. */
export function networkOrder(width: 16 | 32, to: Register): SourceLine {
  return { kind: 'network-order', width, to };
}

/** `to = *(from + offset)` */
export function load(width: Width, to: Register, from: Register, offset: number): SourceLine {
  return { kind: 'load', width, to, from, offset };
}

/** `*(at + offset) = operand` */
export function store(width: Width, at: Register, offset: number, operand: Operand): SourceLine {
  return { kind: 'store', width, at, offset, operand };
}

/** `to = map`, for a helper. */
export function loadMap(to: Register, map: string): SourceLine {
  return { kind: 'map', to, map };
}

/** `to = &value` of an array with one element. */
export function loadValueOf(to: Register, map: string): SourceLine {
  return { kind: 'map', to, map, isValue: true };
}

/** `if register <is> operand goto target` */
export function jumpIf(register: Register, is: Condition, operand: Operand, target: string): SourceLine {
  return { kind: 'jump', when: { register, is, operand }, target };
}

/** `goto target` */
export const jump = (target: string): SourceLine => ({ kind: 'jump', target });

/** `r0 = helper(r1, …)` */
export const call = (helper: Helper): SourceLine => ({ kind: 'call', helper });

/** Ends the program with the result in `r0`. */
export const exit = (): SourceLine => ({ kind: 'exit' });

/** Names the place of the next instruction. */
export const label = (name: string): SourceLine => ({ kind: 'label', name });
