import test from 'ava';
import { assemble, type SourceLine } from '../../bpf/assemble.ts';
import { disassemble } from '../../bpf/disassemble.ts';
import { decodeInstructions, encodeInstruction } from '../../bpf/instruction.ts';
import {
  alu,
  call,
  exit,
  jump,
  jumpIf,
  label,
  load,
  loadMap,
  loadValueOf,
  move,
  networkOrder,
  store,
} from '../../bpf/source.ts';

/**
 * Each row: how it is shown as the instruction 0, and the bytes of struct bpf_insn, printed by a C program that fills the fields
 * by the macros of uapi/linux/bpf.h (6.1).
 */
const GOLDENS: readonly (readonly [SourceLine, string, string])[] = [
  [move('r6', 'r1'), 'r6 = r1', 'bf16000000000000'],
  [move('r0', -1), 'r0 = -1', 'b7000000ffffffff'],
  [alu('add', 'r2', -16), 'r2 += -16', '07020000f0ffffff'],
  [alu('sub', 'r1', 14), 'r1 -= 14', '170100000e000000'],
  [alu('or', 'r5', 'r1'), 'r5 |= r1', '4f15000000000000'],
  [alu('and', 'r5', 255), 'r5 &= 255', '57050000ff000000'],
  [alu('lsh', 'r5', 8), 'r5 <<= 8', '6705000008000000'],
  [alu('rsh', 'r3', 4), 'r3 >>= 4', '7703000004000000'],
  [networkOrder(16, 'r1'), 'r1 = be16 r1', 'dc01000010000000'],
  [networkOrder(32, 'r2'), 'r2 = be32 r2', 'dc02000020000000'],
  [load(8, 'r5', 'r8', 22), 'r5 = *(u8 *)(r8 + 22)', '7185160000000000'],
  [load(16, 'r5', 'r8', 12), 'r5 = *(u16 *)(r8 + 12)', '69850c0000000000'],
  [load(32, 'r8', 'r6', 76), 'r8 = *(u32 *)(r6 + 76)', '61684c0000000000'],
  [load(64, 'r1', 'r7', 16), 'r1 = *(u64 *)(r7 + 16)', '7971100000000000'],
  [store(8, 'r8', 22, 'r1'), '*(u8 *)(r8 + 22) = r1', '7318160000000000'],
  [store(16, 'r8', 24, 'r1'), '*(u16 *)(r8 + 24) = r1', '6b18180000000000'],
  [store(32, 'r10', -16, 'r5'), '*(u32 *)(r10 - 16) = r5', '635af0ff00000000'],
  [store(64, 'r10', -80, 'r0'), '*(u64 *)(r10 - 80) = r0', '7b0ab0ff00000000'],
  [store(64, 'r10', -88, 0), '*(u64 *)(r10 - 88) = 0', '7a0aa8ff00000000'],
  [loadMap('r1', 'm'), 'r1 = map[fd:42]', '181100002a0000000000000000000000'],
  [loadValueOf('r1', 'm'), 'r1 = map_value[fd:42]', '182100002a0000000000000000000000'],
  [call('map_lookup_elem'), 'call bpf_map_lookup_elem', '8500000001000000'],
  [call('map_update_elem'), 'call bpf_map_update_elem', '8500000002000000'],
  [call('map_delete_elem'), 'call bpf_map_delete_elem', '8500000003000000'],
  [call('skb_store_bytes'), 'call bpf_skb_store_bytes', '8500000009000000'],
  [call('l3_csum_replace'), 'call bpf_l3_csum_replace', '850000000a000000'],
  [call('l4_csum_replace'), 'call bpf_l4_csum_replace', '850000000b000000'],
  [call('clone_redirect'), 'call bpf_clone_redirect', '850000000d000000'],
  [call('redirect'), 'call bpf_redirect', '8500000017000000'],
  [call('skb_pull_data'), 'call bpf_skb_pull_data', '8500000027000000'],
  [call('csum_update'), 'call bpf_csum_update', '8500000028000000'],
  [call('ktime_get_coarse_ns'), 'call bpf_ktime_get_coarse_ns', '85000000a0000000'],
  [call('check_mtu'), 'call bpf_check_mtu', '85000000a3000000'],
  [exit(), 'exit', '9500000000000000'],
];

/** The same of jumps over so many instructions. */
const JUMPS: readonly (readonly [(to: string) => SourceLine, number, string, string])[] = [
  [(to) => jump(to), 5, 'goto 6', '0500050000000000'],
  [(to) => jumpIf('r0', '==', 0, to), 3, 'if r0 == 0 goto 4', '1500030000000000'],
  [(to) => jumpIf('r4', '>', 'r3', to), 7, 'if r4 > r3 goto 8', '2d34070000000000'],
  [(to) => jumpIf('r1', '>=', 0xffff, to), 1, 'if r1 >= 65535 goto 2', '35010100ffff0000'],
  [(to) => jumpIf('r1', '<', 0xffff, to), 1, 'if r1 < 65535 goto 2', 'a5010100ffff0000'],
  [(to) => jumpIf('r1', '<=', 'r2', to), 9, 'if r1 <= r2 goto 10', 'bd21090000000000'],
  [(to) => jumpIf('r5', 'set', 0xff3f, to), 2, 'if r5 & 65343 goto 3', '450502003fff0000'],
];

test('assemble, disassemble: each instruction has the bytes of the kernel’s header', (t) => {
  for (const [line, shown, bytes] of GOLDENS) {
    const assembled = assemble([line], { m: 42 });
    t.is(Buffer.from(assembled).toString('hex'), bytes, shown);
    t.deepEqual(disassemble(assembled), [`0: ${shown}`]);
  }
});

test('assemble: a jump counts instructions of 8 bytes after itself', (t) => {
  for (const [jumpTo, over, shown, bytes] of JUMPS) {
    const assembled = assemble([jumpTo('end'), ...Array.from({ length: over }, exit), label('end'), exit()], {});
    t.is(Buffer.from(assembled.subarray(0, 8)).toString('hex'), bytes, shown);
    t.is(disassemble(assembled)[0], `0: ${shown}`);
  }
});

test('assemble: a jump back, and over a map, which takes two instructions', (t) => {
  const back = assemble([label('top'), loadMap('r1', 'm'), exit(), jumpIf('r1', '!=', 'r2', 'top')], { m: 42 });
  t.is(Buffer.from(back.subarray(24)).toString('hex'), '5d21fcff00000000');
  t.deepEqual(disassemble(back).slice(1), ['2: exit', '3: if r1 != r2 goto 0']);
});

test('decodeInstructions: returns what encodeInstruction took', (t) => {
  for (const [line] of GOLDENS) {
    const [instruction] = decodeInstructions(assemble([line], { m: 7 }));
    if (instruction === undefined) return t.fail();
    t.deepEqual(Buffer.from(encodeInstruction(instruction)), Buffer.from(assemble([line], { m: 7 })));
  }
});

test('assemble: names what is wrong in a source', (t) => {
  const refused: readonly (readonly [readonly SourceLine[], string])[] = [
    [[jump('nowhere')], 'bpf: no label nowhere'],
    [[label('a'), exit(), label('a')], 'bpf: the label a is there twice'],
    [[loadMap('r1', 'flows')], 'bpf: no map flows'],
    [[load(8, 'r1', 'r2', 40_000)], 'bpf: the offset 40000 does not fit into 16 bits'],
    [[move('r1', 2 ** 32)], 'bpf: the number 4294967296 does not fit into 32 bits'],
    [[move('r1', 0.5)], 'bpf: the number 0.5 does not fit into 32 bits'],
  ];
  for (const [source, message] of refused) t.throws(() => assemble(source, {}), { instanceOf: RangeError, message });
});

test('disassemble: refuses what is no instruction of ours', (t) => {
  t.throws(() => disassemble(Buffer.from('06000000000000', 'hex')), { message: 'bpf: 7 bytes are left' });
  t.throws(() => disassemble(Buffer.from('0600000000000000', 'hex')), { message: /unknown instruction 0x6 at byte 0/ });
  t.throws(() => disassemble(Buffer.from('bf0f000000000000', 'hex')), { message: /no register r15/ });
});
