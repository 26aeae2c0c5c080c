import { type AluOperation, decodeInstructions, type Instruction, slotsOf } from './instruction.ts';

const SIGN: Readonly<Record<AluOperation, string>> = {
  ...{ mov: '=', add: '+=', sub: '-=', or: '|=', and: '&=', lsh: '<<=', rsh: '>>=' },
};

/**
 * Renders instructions in the syntax of bpftool(8) and of the verifier's log, each with the number by which that log names it.
 * @throws RangeError for bytes that are no instructions
 */
export function disassemble(bytes: Uint8Array): readonly string[] {
  let at = 0;
  return decodeInstructions(bytes).map((instruction) => {
    const line = `${at}: ${render(instruction, at)}`;
    at += slotsOf(instruction);
    return line;
  });
}

function render(instruction: Instruction, at: number): string {
  switch (instruction.kind) {
    case 'alu':
      return `${instruction.to} ${SIGN[instruction.operation]} ${instruction.operand}`;
    case 'network-order':
      return `${instruction.to} = be${instruction.width} ${instruction.to}`;
    case 'load':
      return `${instruction.to} = ${memory(instruction.width, instruction.from, instruction.offset)}`;
    case 'store':
      return `${memory(instruction.width, instruction.at, instruction.offset)} = ${instruction.operand}`;
    case 'jump': {
      const { when, target } = instruction;
      const sign = when?.is === 'set' ? '&' : when?.is;
      const condition = when === undefined ? '' : `if ${when.register} ${sign} ${when.operand} `;
      return `${condition}goto ${at + 1 + target}`;
    }
    case 'map':
      return `${instruction.to} = ${instruction.isValue === true ? 'map_value' : 'map'}[fd:${instruction.map}]`;
    case 'call':
      return `call bpf_${instruction.helper}`;
    case 'exit':
      return 'exit';
  }
}

function memory(width: number, register: string, offset: number): string {
  return `*(u${width} *)(${register} ${offset < 0 ? '-' : '+'} ${Math.abs(offset)})`;
}
