/**
 * Builds an ELF object with one eBPF program that gives every packet the same verdict: `ip link set … xdp obj` and
 * `tc filter add … bpf da obj` load it, without a compiler. @see uapi/linux/bpf.h, elf(5)
 */
export function bpfObject(section: 'xdp' | 'tc', verdict: number): Uint8Array {
  const names = ['', '.strtab', section, 'license', '.symtab', 'verdict'];
  const strings = Buffer.from(`${names.join('\0')}\0`, 'latin1');
  const nameAt = (name: string): number => (name === '' ? 0 : strings.indexOf(`\0${name}\0`) + 1);
  // r0 = verdict; exit
  const program = Buffer.alloc(16);
  program.writeUInt8(0xb7, 0);
  program.writeInt32LE(verdict, 4);
  program.writeUInt8(0x95, 8);
  const symbols = Buffer.alloc(2 * SYMBOL_BYTES);
  symbols.writeUInt32LE(nameAt('verdict'), SYMBOL_BYTES);
  symbols.writeUInt8(GLOBAL_FUNCTION, SYMBOL_BYTES + 4);
  symbols.writeUInt16LE(2, SYMBOL_BYTES + 6);
  symbols.writeBigUInt64LE(BigInt(program.length), SYMBOL_BYTES + 16);
  const sections = [
    { name: '', type: 0, flags: 0, data: Buffer.alloc(0) },
    { name: '.strtab', type: 3, flags: 0, data: strings },
    { name: section, type: 1, flags: 6, data: program },
    { name: 'license', type: 1, flags: 3, data: Buffer.from('GPL\0\0\0\0\0', 'latin1') },
    { name: '.symtab', type: 2, flags: 0, data: symbols, link: 1, info: 1, entry: SYMBOL_BYTES },
  ];
  const padded = sections.map(({ data }) => Buffer.concat([data, Buffer.alloc((8 - (data.length % 8)) % 8)]));
  const header = Buffer.alloc(HEADER_BYTES);
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  header.writeUInt16LE(1, 16);
  header.writeUInt16LE(EM_BPF, 18);
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(BigInt(HEADER_BYTES + padded.reduce((sum, { length }) => sum + length, 0)), 40);
  header.writeUInt16LE(HEADER_BYTES, 52);
  header.writeUInt16LE(SECTION_BYTES, 58);
  header.writeUInt16LE(sections.length, 60);
  header.writeUInt16LE(1, 62);
  let offset = HEADER_BYTES;
  const table = sections.map(({ name, type, flags, data, link = 0, info = 0, entry = 0 }, index) => {
    const row = Buffer.alloc(SECTION_BYTES);
    row.writeUInt32LE(nameAt(name), 0);
    row.writeUInt32LE(type, 4);
    row.writeBigUInt64LE(BigInt(flags), 8);
    row.writeBigUInt64LE(BigInt(offset), 24);
    row.writeBigUInt64LE(BigInt(data.length), 32);
    row.writeUInt32LE(link, 40);
    row.writeUInt32LE(info, 44);
    row.writeBigUInt64LE(8n, 48);
    row.writeBigUInt64LE(BigInt(entry), 56);
    offset += padded[index]?.length ?? 0;
    return row;
  });
  return Buffer.concat([header, ...padded, ...table]);
}

const HEADER_BYTES = 64;
const SECTION_BYTES = 64;
const SYMBOL_BYTES = 24;
/** Machine number of eBPF. */
const EM_BPF = 247;
/** STB_GLOBAL, STT_FUNC. */
const GLOBAL_FUNCTION = 0x12;
