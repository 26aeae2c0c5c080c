/** What was read of a running agent: seconds, resident and anonymous MiB. @see docs/testing.md for how */
export type Recorded = readonly [seconds: number, rssMiB: number, anonMiB: number];

function livesOf(text: string): readonly Recorded[] {
  return [...text.matchAll(/(\d+) (\d+) (\d+)/g)].map(([, at, rss, anon]) => [Number(at), Number(rss), Number(anon)]);
}

/** One undisturbed amid 12,000 ADDs and as many DELs, the objects of its heap the same before and after. */
export const CALM = livesOf(`
  2 70 36, 8 78 44, 14 79 44, 20 78 44, 26 79 44, 32 71 41, 38 75 44, 44 76 44, 50 75 44, 56 75 44, 62 75 42,
  68 79 46, 74 78 45, 80 78 45, 86 78 46, 92 74 43, 98 72 42, 104 75 44, 110 75 44, 116 78 47, 122 74 42,
  128 76 44, 134 76 44, 140 76 44, 146 77 45, 152 72 41, 158 82 50, 164 82 50, 170 82 50, 176 81 49, 182 73 42,
  188 77 46, 194 97 65, 200 111 79, 206 88 57, 212 78 49, 218 76 46
`);

/** One in a soak, with what is done to it there. */
export const DISTURBED = livesOf(`
  0 85 31, 5 93 39, 10 100 46, 15 104 50, 20 112 58, 26 117 63, 31 114 65, 36 118 67, 41 120 68, 46 102 50,
  52 105 53, 57 105 53, 62 95 46, 67 96 47, 73 94 44, 78 96 45, 84 96 45, 90 82 42, 95 92 42, 101 94 44,
  106 94 44, 111 96 45, 116 96 45, 121 94 44, 126 106 55, 132 120 69, 137 133 81, 142 134 81, 147 134 81,
  152 121 74, 158 105 56, 163 106 56, 168 98 48, 173 100 49, 178 90 55, 183 119 70
`);

/** One that was made to leave a listener on a signal with each of 8,700 calls. */
export const LEAKING = livesOf(`
  2 59 30, 8 70 35, 14 79 45, 20 86 51, 26 80 50, 32 84 54, 38 88 58, 44 90 60, 50 92 62, 56 92 65, 62 99 67,
  69 103 70, 75 103 71, 81 104 71, 87 94 64, 93 89 59, 99 96 66, 105 103 73, 111 107 76, 117 108 77, 123 111 80,
  129 116 84, 135 122 90, 141 128 96, 147 129 100, 154 138 108, 160 150 119, 166 151 120, 172 153 122,
  178 145 115, 184 161 131, 190 178 147, 196 195 165, 202 214 183, 208 195 166, 214 198 168, 220 200 170,
  226 202 172
`);
