// What host_extension.py calls: it counts words, and remembers every text that it was given.
#include <stdlib.h>
#include <string.h>

struct entry {
  struct entry* next;
  char* text;
};

static struct entry* seen;

static char* copy_of(const char* text, size_t size) {
  char* copy = malloc(size + 1);  // <- allocated
  memcpy(copy, text, size);
  copy[size] = 0;
  return copy;
}

size_t count_words(const char* text, size_t size) {
  char* scratch = malloc(size + 1);
  struct entry* entry = malloc(sizeof *entry);
  size_t words = 0;
  memcpy(scratch, text, size);
  scratch[size] = 0;
  for (char* word = strtok(scratch, " "); word; word = strtok(NULL, " ")) ++words;
  free(scratch);
  entry->text = copy_of(text, size);
  entry->next = seen;
  seen = entry;
  return words;
}
